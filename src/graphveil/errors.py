"""The one family of errors a user can meet: what is wrong, where, and what to do."""

from __future__ import annotations


class GraphveilError(Exception):
    """Base of every error graphveil raises on purpose; the command line prints it as one line."""


class InputError(GraphveilError):
    """The data, a file or an option is not usable as given."""


class PrivacyError(GraphveilError):
    """A step was refused because the promise would not hold."""


class DataWarning(UserWarning):
    """The data were repaired or have a property the user should know about; private figures are not printed."""


FOR_THE_OPERATOR = "(for the operator only: not covered by the promise)"
