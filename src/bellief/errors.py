"""The one error class that stands for a mistake of the caller, not of Bellief."""


class UserError(ValueError):
    """A mistake the user can mend: one sentence that says what, where and what to do.

    The command line prints the sentence and exits with code 2; in Python it is an ordinary `ValueError`.

    >>> import bellief
    >>> bellief.make("nchian")
    Traceback (most recent call last):
        ...
    bellief.errors.UserError: There is no environment called 'nchian': did you mean 'nchain'?
    >>> issubclass(bellief.UserError, ValueError)
    True
    """

    def __init__(self, message: object = "") -> None:
        # Texts from elsewhere (a cell, another library's complaint) may bring line breaks; a sentence has none.
        super().__init__(" ".join(str(message).splitlines()))
