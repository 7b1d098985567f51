"""The worker: which conversation has something to do, and doing it, one thing at a time in each."""
