"""What we promise: promises, mechanisms, noise, accounting, plans, ledgers, curators and certificates."""
