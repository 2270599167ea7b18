"""What the operations of a journal amount to: calls, how much of each counts, what is between."""

from __future__ import annotations

from dataclasses import dataclass, field

from boundary_forest.durable.operations import ERASE, TRUNCATE, Operation


@dataclass(slots=True)
class LearnedCall:
    """Examples that were given to one learning call.

    Attributes
    ----------
    number : int
        Of its first operation.
    first, n : int
        How many examples had been learned before, and how many it has.
    kept : int
        How many of them count.
    """

    number: int
    first: int
    n: int
    kept: int

    @property
    def end(self) -> int:
        """How many examples have been learned after it."""
        return self.first + self.kept


@dataclass(slots=True)
class Log:
    """What the operations of a journal amount to.

    Attributes
    ----------
    operations : list of Operation
        All of them, in order.
    calls : list of LearnedCall
        Those of which something counts.
    between : set of int
        The numbers of the erasures between calls that count.
    n_bytes : int
        Bytes of contents.
    """

    operations: list[Operation] = field(default_factory=list)
    calls: list[LearnedCall] = field(default_factory=list)
    between: set[int] = field(default_factory=set)
    n_bytes: int = 0

    def add(self, operation: Operation, n_bytes: int) -> None:
        """Take the next operation into account; ValueError if it cannot come next."""
        if self.operations and operation.number != self.operations[-1].number + 1:
            raise ValueError(
                f"it follows operation {self.operations[-1].number}, so operations are missing"
            )
        if operation.kind == TRUNCATE:
            self._truncate(operation)
        elif operation.kind == ERASE:
            self._check_first(operation)
            self.between.add(operation.number)
        else:
            self._add_examples(operation)
        self.operations.append(operation)
        self.n_bytes += n_bytes

    def _check_first(self, operation: Operation) -> LearnedCall | None:
        last = self.calls[-1] if self.calls else None
        if last is not None and operation.first != last.end:
            raise ValueError(f"it begins after {operation.first} examples instead of {last.end}")
        return last

    def _add_examples(self, operation: Operation) -> None:
        last = self._check_first(operation)
        if operation.call == operation.number:
            self.calls.append(
                LearnedCall(operation.number, operation.first, operation.n, kept=operation.n)
            )
        elif last is not None and last.number == operation.call and last.kept == last.n:
            last.n = last.kept = last.n + operation.n
        else:
            raise ValueError(
                f"it continues the call of operation {operation.call}, which is not open"
            )

    def _truncate(self, operation: Operation) -> None:
        last = self.calls[-1] if self.calls else None
        if last is None or last.number != operation.call or operation.n > last.kept:
            raise ValueError(
                f"it truncates the call of operation {operation.call}, which is not the last one "
                "or is shorter"
            )
        last.kept = operation.n
        self.between = {number for number in self.between if number < last.number}
        if last.kept == 0:
            self.calls.pop()
