"""Cases: questions with what is expected of their answers, asked of a prompt or a model; no tool runs."""

from botservice.evaluation.cases import Case, Expectations, Suite, read_suite
from botservice.evaluation.running import CaseResult, evaluate

__all__ = ["Case", "CaseResult", "Expectations", "Suite", "evaluate", "read_suite"]
