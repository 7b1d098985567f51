"""The web server: uvicorn, its limits, and the processes that it starts."""
