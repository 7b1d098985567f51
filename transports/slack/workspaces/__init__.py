"""The workspaces in which the bot is installed, and the people there."""
