"""Metrics of files: what became of their reading, and what searches found."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_MADE_BUCKETS = (0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0)
_SEARCH_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class FileMetrics:
    """Outcomes are short words of fixed sets."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._made = Counter(
            "antiphon_documents",
            "Files that were read, or why not",
            ["outcome"],
            registry=registry,
        )
        self._made_s = Histogram(
            "antiphon_document_seconds",
            "How long the reading and embedding of one file takes",
            buckets=_MADE_BUCKETS,
            registry=registry,
        )
        self._searched = Counter(
            "antiphon_file_searches",
            "Questions that were asked of files, and whether anything was found",
            ["outcome"],
            registry=registry,
        )
        self._searched_s = Histogram(
            "antiphon_file_search_seconds",
            "How long a question takes",
            buckets=_SEARCH_BUCKETS,
            registry=registry,
        )

    def document_made(self, outcome: str, seconds: float) -> None:
        self._made.labels(outcome).inc()
        self._made_s.observe(seconds)

    def files_searched(self, outcome: str, seconds: float) -> None:
        self._searched.labels(outcome).inc()
        self._searched_s.observe(seconds)

    def watch(self, in_hand: Callable[[], int]) -> None:
        """Show how many files are being read when somebody looks."""
        gauge = Gauge(
            "antiphon_documents_in_hand",
            "Files that are being read on this server",
            registry=self._registry,
        )
        gauge.set_function(in_hand)
