"""Servers that speak as OpenAI does: Responses and chat.completions."""
