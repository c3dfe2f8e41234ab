"""The budget book of a data set: what was promised, spent and left over all runs, durable and tamper-evident."""

from graphveil.privacy.budget.account import Account, Notion
from graphveil.privacy.budget.book import RECEIPT, BudgetBook, Reservation
from graphveil.privacy.budget.charge import Charge

__all__ = ["RECEIPT", "Account", "BudgetBook", "Charge", "Notion", "Reservation"]
