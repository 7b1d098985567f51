"""For developers of a bot: replay, evaluation, and the queries of the inspector."""
