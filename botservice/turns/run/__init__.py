"""The run of a turn: the model is asked, tools are called, each step is stored, the answer is written."""
