"""The page for people: one HTML document made from the status document."""
