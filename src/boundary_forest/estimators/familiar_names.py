"""Methods of other indexes, and what they are called here: for those who come from one of these."""

from __future__ import annotations

from typing import Any, NoReturn

_ADD = "partial_fit(X, ids=ids), or upsert(X, ids) to replace vectors"
_FIND = "kneighbors(X, n_neighbors)"
_REMOVE = "forget(ids)"
_GET = "get(ids)"
_LENGTH = "len(index)"
_NO_NEED = "nothing: an index takes vectors at any time, and any number of them"

# hnswlib, FAISS, USearch and Annoy; and what vector stores call it
ELSEWHERE = {
    **dict.fromkeys(("add", "add_items", "add_with_ids", "add_item", "insert"), _ADD),
    **dict.fromkeys(("query", "knn_query", "get_nns_by_vector"), _FIND),
    **dict.fromkeys(("remove", "remove_ids", "delete", "mark_deleted", "discard"), _REMOVE),
    **dict.fromkeys(("get_items", "get_item_vector", "reconstruct"), _GET),
    **dict.fromkeys(("get_current_count", "get_n_items", "ntotal"), _LENGTH),
    **dict.fromkeys(("init_index", "resize_index", "train", "build"), _NO_NEED),
    "get_nns_by_item": "kneighbors(index.get(ids), n_neighbors)",
    "range_search": "radius_neighbors(X, radius)",
    "get_ids_list": "list(index)",
    "keys": "list(index)",
    "set_ef": "set_params(beam=...), or kneighbors(..., beam=...)",
    "save_index": "save(path)",
    "load_index": "boundary_forest.load(path)",
}


class SearchName(str):
    """The value of the parameter ``search``; calling it, as other indexes allow, is refused."""

    __slots__ = ()

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: it is not a method."""
        raise TypeError(
            f"search is a parameter of the index, {str(self)!r}, and not a method: use {_FIND}"
        )


class _SearchParameter:
    """The attribute ``search``, kept as it was given, and read as a SearchName."""

    def __set__(self, owner: Any, value: Any) -> None:
        owner.__dict__["search"] = str(value) if isinstance(value, SearchName) else value

    def __get__(self, owner: Any, _: type | None = None) -> Any:
        if owner is None:
            return self
        if "search" not in owner.__dict__:
            raise AttributeError("search is not set", name="search", obj=owner)
        value = owner.__dict__["search"]
        return SearchName(value) if isinstance(value, str) else value


class FamiliarNamesMixin:
    """Adds errors that name the method to call instead to an estimator."""

    search = _SearchParameter()

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

        Parameters
        ----------
        deep : bool, default=True
            Of no effect, as no parameter is an estimator.

        Returns
        -------
        params : dict

        Examples
        --------
        >>> from boundary_forest import BoundaryForestNeighbors
        >>> BoundaryForestNeighbors(search="paper").get_params()["search"]
        'paper'
        """
        params: dict[str, Any] = super().get_params(deep)  # type: ignore[misc]
        return {**params, "search": self.__dict__["search"]}

    def __getattr__(self, name: str) -> Any:
        message = f"{type(self).__name__!r} object has no attribute {name!r}"
        if name in ELSEWHERE:
            message += f": use {ELSEWHERE[name]}"
        raise AttributeError(message, name=name, obj=self)
