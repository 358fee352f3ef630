"""Extensions are tried at the command line as the verbs of the core are."""

from tests.polarfab.conftest import polarfab

__all__ = ["polarfab"]
