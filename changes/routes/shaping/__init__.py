"""What a route makes of its rows before they are written: columns, names, masks."""
