"""signspot finds signs in sign-language video: whether, where and in which variant."""

__all__: list[str] = []
