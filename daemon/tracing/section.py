"""``[tracing]``: where spans go, and of how many batches."""

from __future__ import annotations

from urllib.parse import urlsplit

from pydantic import Field, field_validator

from daemon.config.sections import Section

TRACES = "/v1/traces"
"""Where OTLP/HTTP receivers take spans."""


class TracingSection(Section):
    """``endpoint`` empty: nothing is traced."""

    endpoint: str = ""
    sample: float = Field(0.1, gt=0, le=1, strict=False)
    headers: dict[str, str] = Field(default_factory=dict)

    @field_validator("endpoint")
    @classmethod
    def _http(cls, value: str) -> str:
        if not value:
            return value
        url = urlsplit(value)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ValueError('an address such as "http://127.0.0.1:4318" is wanted')
        if url.username or url.password:
            raise ValueError("a password belongs into tracing.headers, which is shown nowhere")
        return value

    @property
    def url(self) -> str:
        """Where spans are posted to: an address without a path gets OTLP's."""
        whole = urlsplit(self.endpoint)
        return self.endpoint if whole.path.strip("/") else whole._replace(path=TRACES).geturl()
