"""How a connection to MySQL or MariaDB is encrypted, by its URL."""

from __future__ import annotations

import ssl

from sparkwriter.jdbc.url import JdbcUrl


def tls_of(url: JdbcUrl) -> ssl.SSLContext | None:
    """None: it is not."""
    if url.tls == "disable":
        return None
    context = ssl.create_default_context(cafile=url.certificates)
    context.check_hostname = url.tls == "verify-full"
    if not url.tls.startswith("verify"):
        context.verify_mode = ssl.CERT_NONE
    return context
