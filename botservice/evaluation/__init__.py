"""Cases of questions with what is expected of their answers, against a prompt or a model."""
