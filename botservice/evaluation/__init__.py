"""Evaluation: asking a prompt or model the questions of a file, and checking the answers; no tool runs."""

from botservice.evaluation.cases import Case, Expectations, Suite, read_suite
from botservice.evaluation.running import CaseResult, evaluate

__all__ = ["Case", "CaseResult", "Expectations", "Suite", "evaluate", "read_suite"]
