"""An OpenAI-compatible cluster as an engine: `Upstream` is its launcher and its service."""

from antiphon.engine.upstream.counting import EstimatingTokenizer
from antiphon.engine.upstream.model import UpstreamModel, prepare_upstream
from antiphon.engine.upstream.service import Upstream
from antiphon.engine.upstream.survey import survey

__all__ = ["EstimatingTokenizer", "Upstream", "UpstreamModel", "prepare_upstream", "survey"]
