"""OpenAI-compatible servers: Responses and chat.completions."""
