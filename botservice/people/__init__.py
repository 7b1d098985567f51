"""People: identities, linking, facts, access, budgets."""
