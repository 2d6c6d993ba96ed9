"""The steps of a run: a step with a stored result is read back; any other step runs, and its ending is stored.

Results and errors are stored as JSON values (``result_codecs``, ``step_errors``).
"""

from __future__ import annotations

import asyncio
import inspect
import json
import math
from collections import deque
from contextlib import contextmanager, nullcontext, suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, ParamSpec, cast

from pydantic import ValidationError

from a2a_serverless.domain.agent_errors import (
    BudgetExceeded,
    RunDiffers,
    StepConflict,
    StepTimedOut,
    TaskFailed,
    TaskRejected,
)
from a2a_serverless.domain.digests import digest
from a2a_serverless.domain.errors import causes_of
from a2a_serverless.domain.json_forms import raw_form
from a2a_serverless.domain.record_names import FAILED, OUTSIDE, RAW, SEPARATOR, SPENT, USAGE, join_path, unfinished_name
from a2a_serverless.domain.step_results import StepResult, StoredError
from a2a_serverless.domain.steps import Retry, Step
from a2a_serverless.domain.usage import add_usage, check_usage, with_cost
from a2a_serverless.domain.waits import WaitKind
from a2a_serverless.engine.act_coroutines import is_coroutine_function
from a2a_serverless.engine.copied_context import InCopiedContext
from a2a_serverless.engine.endings import Wait
from a2a_serverless.engine.observer import Act, ActKind
from a2a_serverless.engine.result_codecs import JSON_TYPES, ResultCodec, TypeCodec, codec_for
from a2a_serverless.engine.scopes import RunningStep, Scope
from a2a_serverless.engine.signals import NeedsWorker, NoResult, StepAlreadyStored, Suspended
from a2a_serverless.engine.step_errors import dump_error, failure_of, load_error
from a2a_serverless.engine.value_comparison import find_change
from a2a_serverless.protocol.strict_json import BadJson, dump_storable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from a2a_serverless.domain.model import Json
    from a2a_serverless.domain.steps import Codec
    from a2a_serverless.domain.usage import Usage
    from a2a_serverless.engine.execution import Execution

P = ParamSpec("P")
MOST_ITEMS: Final = 1000
UNFINISHED_LIMIT: Final = 3
INTEGER_BITS: Final = 64
UNFINISHED_TIMES: Final = range(1, UNFINISHED_LIMIT + 1)
FAILURES_LIMIT: Final = 16
LONGEST_AWAKE_S: Final = 10
"""A longer pause between two tries of a step suspends the task."""


@dataclass(frozen=True, slots=True)
class _Try:
    """A try of a step, with its ``number`` among all tries in its scope, whose error is stored as ``error_name``.

    It is number ``tries`` of this use of the step. The first one began at ``began_at`` (ms, 0 if it is this one).
    """

    path: str
    options: Step
    arguments: str
    number: int
    error_name: str
    tries: int
    began_at: int


class _Failure(NamedTuple):
    """The ``error`` of a try, as the agent gets it, and the ``original`` that its work raised in this run."""

    attempt: _Try
    began_at: int
    error: Exception
    original: BaseException


class Steps:
    """The steps of an execution. ``prices`` are USD for a million of each amount, by model."""

    def __init__(self, execution: Execution, prices: Usage) -> None:
        self._execution, self._prices = execution, prices
        self._session, self._journal = execution.session, execution.journal
        self._endings, self._artifact_writer = execution.endings, execution.artifact_writer
        self._secrets: set[str] = set()
        self._failures: deque[_Failure] = deque(maxlen=FAILURES_LIMIT)
        self._stored_count = 0

    async def step(self, name: str | Step, work: Callable[P, Any], *args: P.args, **kwargs: P.kwargs) -> Any:  # noqa: ANN401 - the work's own
        """See ``TaskContext.step``."""
        check_callable("step", work)
        scope = self._execution.open_scope()
        options = name if isinstance(name, Step) else Step(name)
        codec = options.codec or codec_for(work)
        if isinstance(codec, str):
            raise TaskFailed(f"The step {options.name!r} cannot store what its function's annotation says: {codec}.")
        if codec is not options.codec:
            options = replace(options, codec=codec)
        with scope.use(options.name, repeat=options.repeat) as path:
            self._session.observer.note_arguments(path, args, kwargs)
            call = partial(result_of, work, *args, **kwargs)
            arguments = self._session.observer.digest_arguments(path, args, kwargs)
            arguments = arguments or self._digest_arguments(path, args, kwargs)
            return await self.execute(scope, path, options, arguments, call)

    async def map(
        self, name: str | Step, work: Callable[[Any], Any], items: list[Any], limit: int, tolerate: int
    ) -> list[object]:
        """See ``TaskContext.map``."""
        check_callable("map", work)
        options = name if isinstance(name, Step) else Step(name)
        if len(items) > MOST_ITEMS or limit < 1:
            raise ValueError(f"A map has at most {MOST_ITEMS} items, and a limit of 1 or more.")
        once = replace(options, repeat=False, retry=options.retry or Retry(tries=1))

        async def run(at: int) -> object:
            await self._execution.check_signal()
            with self._execution.remember_signal():
                return await self.step(replace(once, name=str(at)), work, items[at])

        with self._execution.scopes.open(options.name):
            results = await run_each(run, len(items), limit, tolerate)
        await self._execution.check_signal()  # it stands in the places of results
        return results

    async def execute(
        self, scope: Scope, path: str, options: Step, arguments: str, work: Callable[[], Awaitable[object]]
    ) -> object:
        """The step's result, from the store or by running it. Raises the error of its last try."""
        tries = began_at = 0
        while True:
            number, tries = scope.next(f"try {path}"), tries + 1
            attempt = _Try(path, options, arguments, number, scope.error_name(path, number), tries, began_at)
            try:
                return await self._try(scope, attempt, work)
            except asyncio.CancelledError:
                self._journal.note_canceled(path)
                raise
            except Exception:
                record = self._journal.get(attempt.error_name)
                if record is None or not (error := StoredError.of(record)).retry_at:
                    raise
            began_at = error.began_at
            await self._pause(scope, path, number + 1, error.retry_at)

    def record_usage(self, scope: Scope, model: str, amounts: Mapping[str, float]) -> None:
        """Adds usage to the running step, or stores usage outside of steps, unless it is stored."""
        check_usage({model: amounts})
        amounts = dict(with_cost(model, amounts, self._prices))
        usage = {model: amounts}
        if scope.step:
            scope.step.usage = add_usage(scope.step.usage, usage)
        else:
            act = f"{USAGE}{digest([scope.path, model, amounts])[:16]}"
            name = f"{act}/{scope.next(act)}"
            if name in self._journal:
                return
            self._journal.store(name, StepResult("", None, usage=usage))
        if self._session.tracer.is_on:
            self._record_model_call(scope.step, model, amounts)

    def keep_secret(self, secret: str) -> None:
        """From now on no step may store a result with this text."""
        self._secrets.add(secret)

    def note_unfinished(self) -> None:
        """Stores which steps the time limit interrupted, unless a result was stored since they began.

        Raises StepTimedOut if no step was running and several runs in a row reach the time limit.
        """
        steps = self._execution.unfinished_steps
        for step in steps:
            if step.stored_before == self._stored_count:
                times = sum(self._interrupted_step(step.path, number) is not None for number in UNFINISHED_TIMES)
                ms = self._session.now() - step.began_at
                result = StepResult("", ms, began_at=step.began_at)
                self._journal.store(unfinished_name(step.path, times + 1), result)
        if steps or self._session.has_written:
            return
        fence = self._session.fence
        if all(f"{OUTSIDE}{fence - number}" in self._journal for number in range(1, UNFINISHED_LIMIT)):
            raise StepTimedOut(
                f"{UNFINISHED_LIMIT} runs in a row reached the platform's time limit without storing anything. Code"
                " outside of steps runs again in each run: put long work into steps."
            )
        self._journal.store(f"{OUTSIDE}{fence}", StepResult("", None))

    def note_failed(self, error: BaseException) -> tuple[BaseException, str]:
        """Stores from which step's try ``error`` comes, the innermost one, if it comes from one. It ends the task.

        An error that says that this run differs comes from the act that differs: a retry does it again.

        Returns the error that tells its author the most, the one that the step's work raised, with its causes; and the
        step's path, "" if the error comes from no step.
        """
        chain = [*causes_of(error)]
        path = next((one.path for one in chain if isinstance(one, RunDiffers | StepTimedOut)), "")
        if isinstance(error, RunDiffers):
            self._journal.store(f"{FAILED}{path}", StepResult("", "", error=type(error).__name__))
            return error, path
        causes = set(map(id, chain))
        failure = next((one for one in self._failures if id(one.error) in causes), None)
        if failure is None:
            return error, path
        attempt, kind = failure.attempt, type(failure.original).__name__
        result = StepResult("", attempt.error_name, began_at=failure.began_at, error=kind)
        self._journal.store(f"{FAILED}{attempt.path}", result)
        if failure.error is not error:
            return error, path or attempt.path
        # Its traceback has also the lines that use the step.
        return failure.original.with_traceback(error.__traceback__), path or attempt.path

    def _digest_arguments(self, path: str, args: tuple[object, ...], kwargs: dict[str, Any]) -> str:
        """The digest of a step's arguments. Raises TypeError for an argument that is no value."""
        try:
            return self._session.digest([list(args), kwargs])
        except TypeError:
            for name, value in [*((str(at), one) for at, one in enumerate(args, 1)), *kwargs.items()]:
                try:
                    digest(value)
                except TypeError as error:
                    raise TypeError(
                        f"The step {path!r} cannot compare its argument {name} with that of a later run: {error}. Pass"
                        " what it is made of, or bind it to the function (functools.partial)."
                    ) from None
            raise

    async def _try(self, scope: Scope, attempt: _Try, work: Callable[[], Awaitable[object]]) -> object:
        """The result of one try, from the store or by running it. Raises its error."""
        path, codec = attempt.path, attempt.options.codec
        if record := self._journal.get(attempt.error_name):
            self._artifact_writer.read_back(path, record.attempt)
            await self._endings.end(record.sequence, scope)
            error = self._load_error(path, record)
            original = self._session.observer.find_error(attempt.error_name) or error
            self._failures.append(_Failure(attempt, record.began_at, error, original))
            raise error.with_traceback(original.__traceback__)
        result = self._journal.get(path)
        act = Act(ActKind.STEP, path, result is None and f"{RAW}{path}" not in self._journal, attempt.arguments, codec)
        if stand_in := self._session.observer.stand_in(act):
            return await stand_in
        if result is None:
            result, value = await self._run(scope, attempt, work)
            await self._endings.end(result.sequence, scope)
            return value
        self._artifact_writer.read_back(path, result.attempt)
        await self._endings.end(result.sequence, scope)
        _check_arguments(path, result, attempt.arguments)
        return _load_value(path, codec, result.value)

    async def _pause(self, scope: Scope, path: str, number: int, until: int) -> None:
        """Returns at ``until`` (ms), when try ``number`` may begin. Raises BudgetExceeded before the pause.

        A long pause lets the task be suspended; a short one keeps the run awake.
        """
        if until > self._session.now():
            await self._execution.admit(path, scope, is_step=True)
        left_s, name = (until - self._session.now()) / 1000, f"{path.rpartition(SEPARATOR)[2]}/{number}"
        if left_s > LONGEST_AWAKE_S:
            wait = Wait(join_path(scope.path, f"retry:{name}"), WaitKind.RETRY, lambda: until, until)
            await self._endings.look(wait, scope)
        elif left_s > 0:
            with self._execution.at_work():
                await asyncio.sleep(left_s)

    async def _run(
        self, scope: Scope, attempt: _Try, work: Callable[[], Awaitable[object]]
    ) -> tuple[StepResult, object]:
        """Runs a step and stores its result, or the error that it raises. Returns also the value that it read back.

        Work that an earlier run has paid for is not done again: its result is stored raw.
        """
        path, options = attempt.path, attempt.options
        session, turn = self._session, self._execution.loop.ready_count
        raw = self._journal.get(f"{RAW}{path}")
        if raw:
            _check_arguments(path, raw, attempt.arguments)
        else:
            await self._execution.admit(path, scope, is_step=True)
            self._check_fits(path)
            _check_type(path, options.codec)
        session.flush()
        writer = self._artifact_writer
        step = RunningStep(
            path,
            options.name,
            scope.step,
            writer.moment(),
            session.now(),
            raw.attempt if raw else writer.attempt(),
            cast("asyncio.Task[Any]", asyncio.current_task()),
            is_at_work=not options.waits,
            stored_before=self._stored_count,
            has_emitted=bool(raw and raw.attempt),
        )
        failure, json_value, later = None, None, None
        with self._running(step):
            try:
                json_value, later = await self._obtain(scope, step, attempt, raw, work)
            except Exception as error:  # noqa: BLE001 - raised below
                failure = _Failure(attempt, step.began_at, error, error)
        if failure is None:
            session.metrics.record({"StepTime": session.now() - step.began_at}, task=session.key.task)
            return self._store_ending(path, attempt.arguments, json_value, step, turn), later
        failure, record = self._store_failure(step, attempt, failure, turn)
        # Outside of the ``except``: inside, the raised copy would have a context that no later run can give it.
        # tests/engine/test_first_run.py: test_an_error_of_a_step_is_the_same_in_the_first_run_as_in_a_later_one
        raise await self._load_failure(scope, path, failure, record)

    async def _obtain(
        self,
        scope: Scope,
        step: RunningStep,
        attempt: _Try,
        raw: StepResult | None,
        work: Callable[[], Awaitable[object]],
    ) -> tuple[Json, object]:
        """The result of a step, as it is stored and as it is read back: ``raw`` or, if there is none, its work's."""
        path, options = attempt.path, attempt.options
        if raw:
            self._artifact_writer.read_back(path, raw.attempt)
            json_value, later = self._read_raw(path, options.codec, raw)
        else:
            step.trace = self._session.new_trace()
            with self._record_span(step, options.tool) if step.trace else nullcontext():
                value = await self._work_in(step, scope.inner(path, step, attempt.number), work)
            try:
                json_value, later = stored_form(path, options.codec, value)
            except TaskFailed as unfit:
                self._store_raw(step, attempt, value, str(unfit))
                raise
        self._check_no_secret(path, json_value)
        return json_value, later

    def _store_raw(self, step: RunningStep, attempt: _Try, value: object, reason: str) -> None:
        """Stores a result that cannot be read back as it was given, with its digest and why: its work is paid for."""
        try:
            raw = [raw_form(value), self._session.digest(value), reason]
        except (TypeError, RecursionError):  # no value: it cannot be stored
            return
        self._check_no_secret(step.path, raw)
        result = StepResult(
            attempt.arguments, raw, step.attempt if step.has_emitted else 0, usage=step.usage, began_at=step.began_at
        )
        self._journal.store(f"{RAW}{step.path}", result)
        step.usage = {}

    def _read_raw(self, path: str, codec: Codec[Any] | None, record: StepResult) -> tuple[Json, object]:
        """As ``stored_form``, of a result that was stored raw. Raises TaskFailed unless the codec reads it whole."""
        raw, wanted, reason = cast("tuple[Json, str, str]", record.value)
        try:
            value: object = codec.load(raw) if codec else None
            is_whole = codec is not None and self._session.digest(value) == wanted
        except Exception:  # noqa: BLE001 - any exception of a codec
            value, is_whole = None, False
        if not is_whole:
            raise TaskFailed(reason)
        return stored_form(path, codec, value)

    def _store_failure(
        self, step: RunningStep, attempt: _Try, failure: _Failure, turn: int
    ) -> tuple[_Failure, StepResult | None]:
        """Stores the error of a step. Returns its failure, that of an inner step if the error comes from there."""
        failure = next((one for one in self._failures if one.error is failure.error), failure)
        self._failures.append(failure)
        self._session.observer.note_error(attempt.error_name, failure.original)
        record = self._store_error(step, attempt, failure.error, turn)
        if record is None:
            self._note_unstored(step, attempt)
        return failure, record

    async def _load_failure(self, scope: Scope, path: str, failure: _Failure, record: StepResult | None) -> Exception:
        """The error that the agent gets: from the store, as in each later run, if it is stored."""
        if record is None:
            return failure.error
        await self._endings.end(record.sequence, scope)
        copy = self._load_error(path, record).with_traceback(failure.error.__traceback__)
        self._failures.append(failure._replace(error=copy))
        return copy

    @contextmanager
    def _running(self, step: RunningStep) -> Iterator[None]:
        execution = self._execution
        execution.running_steps.append(step)
        try:
            yield
            # Its chunks are written while it runs: an observer must not end the run at a chunk, before its ending.
            # tests/test_replay.py: test_no_step_runs_again_because_of_a_replay
            if not execution.is_stopping:
                self._session.flush()
        finally:
            execution.running_steps.remove(step)

    async def _work_in(self, step: RunningStep, scope: Scope, work: Callable[[], Awaitable[object]]) -> object:
        """Runs ``work`` in the step's scope, which the asyncio tasks of ``work`` have, too."""
        execution = self._execution
        try:
            with execution.scopes.enter(scope), execution.at_work() if step.is_at_work else nullcontext():
                value = await InCopiedContext(work())
                execution.check_open()
                execution.act_coroutines.check(step)
        except Exception:
            if not execution.is_stopping:
                self._artifact_writer.settle(step.path, step.attempt)
            raise
        else:
            self._artifact_writer.settle(step.path, step.attempt)
            return value
        finally:
            step.end_moment, scope.is_over = self._artifact_writer.moment(), True

    def _store_ending(
        self, name: str, arguments: str, value: Json, step: RunningStep, turn: int, error: str = ""
    ) -> StepResult:
        """Stores the ending of a step. The ending has no number if no other code ran since ``turn``."""
        sequence = self._journal.next_number() if self._execution.loop.ready_count != turn else 0
        attempt = step.attempt if step.has_emitted else 0
        result = StepResult(arguments, value, attempt, sequence, step.usage, step.began_at, error=error)
        entry = self._journal.store(name, result)
        self._stored_count += 1
        if entry != result:
            self._execution.close(end=StepAlreadyStored())
            raise StepAlreadyStored
        return entry

    def _store_error(self, step: RunningStep, attempt: _Try, error: Exception, turn: int) -> StepResult | None:
        """Stores a step's error: each run raises the same, and no try that has ended runs again.

        None for an error that ends the run or the task, and for a ``NoResult``.
        """
        if self._execution.is_stopping or isinstance(error, StepConflict | StepTimedOut | BudgetExceeded | NoResult):
            return None
        retry, record = attempt.options.retry, self._dump(error)
        if retry:
            began_at = attempt.began_at or step.began_at
            retry_at = _retry_at(retry, error, attempt.tries, began_at, self._session.now())
            record = record._replace(retry_at=retry_at * (retry_at <= self._session.head.deadline), began_at=began_at)
        name = type(error).__name__
        return self._store_ending(attempt.error_name, attempt.arguments, [*record], step, turn, error=name)

    def _note_unstored(self, step: RunningStep, attempt: _Try) -> None:
        """Counts a try whose error is not stored, and stores its usage: once, also if later runs repeat this try."""
        execution, name = self._execution, f"{SPENT}{attempt.error_name}"
        execution.session.budget.count_unstored()
        may_write = not execution.is_stopping or isinstance(execution.signal, BudgetExceeded)
        if may_write and step.usage and name not in self._journal:
            self._journal.store(name, StepResult("", None, usage=step.usage))

    def _dump(self, error: Exception) -> StoredError:
        """The error as it is stored: without its content if that has a secret."""
        record = dump_error(error)
        return StoredError(record.module, record.name, None) if self._has_secret([*record]) else record

    def _load_error(self, path: str, record: StepResult) -> Exception:
        """The stored error of a step; a StepFailed if no copy can be made."""
        error = StoredError.of(record)
        return load_error(error) or failure_of(error, f"The step {path!r}")

    @contextmanager
    def _record_span(self, step: RunningStep, tool: str) -> Iterator[None]:
        """Records the step's span when it ends."""
        session, error = self._session, ""
        try:
            with session.tracer.enter(step.trace):
                yield
        except (asyncio.CancelledError, Suspended, NeedsWorker, StepAlreadyStored):
            raise  # the run stops here and goes on later: no error
        except BaseException as exception:
            error = type(exception).__name__
            raise
        finally:
            from a2a_serverless.domain.spans import step_span

            parent = step.within.trace if step.within else session.trace
            times = (step.began_at, session.now())
            span = step_span(session.head, step.path, tool, step.trace, parent, times)
            session.tracer.record(replace(span, error=error) if error else span)

    def _record_model_call(self, step: RunningStep | None, model: str, amounts: Mapping[str, float]) -> None:
        """Records a model call's span, from its usage. It began with the step, or at the end of the call before."""
        from a2a_serverless.domain.spans import model_span

        session, now = self._session, self._session.now()
        outside = self._execution.busy_since if self._endings.is_busy else now
        start = (step.model_at or step.began_at) if step else outside
        if step:
            step.model_at = now
        parent = (step and step.trace) or session.trace
        session.tracer.record(model_span(session.head, model, amounts, session.new_trace(), parent, (start, now)))

    def _check_fits(self, path: str) -> None:
        """Raises StepTimedOut for a step that time limits have interrupted ``UNFINISHED_LIMIT`` times."""
        if self._interrupted_step(path, UNFINISHED_LIMIT) is None:
            return
        notes = filter(None, (self._interrupted_step(path, number) for number in UNFINISHED_TIMES))
        minutes = max(cast("int", note.value) for note in notes) / 60_000
        raise StepTimedOut(
            f"The step {path!r} did not finish within one run, {UNFINISHED_LIMIT} times. It had at most"
            f" {minutes:.1f} minutes. Split it into smaller steps, or submit the work to another system and wait for"
            " its webhook with task.callback.",
            path,
        )

    def _interrupted_step(self, path: str, times: int) -> StepResult | None:
        return self._journal.get(unfinished_name(path, times))

    def _check_no_secret(self, path: str, value: Json) -> None:
        if self._has_secret(value):
            raise StepConflict(f"The result of the step {path!r} contains a secret. Results are stored.")

    def _has_secret(self, value: Json) -> bool:
        return bool(self._secrets) and any(secret in text for secret in self._secrets for text in _texts(value))


def _retry_at(retry: Retry, error: Exception, tries: int, began_at: int, now: int) -> int:
    """When (ms) a step is tried again after so many tries, the first of which began at ``began_at``; 0 for never."""
    if tries >= retry.tries or isinstance(error, (TaskFailed, TaskRejected, *retry.never)):
        return 0
    at = now + math.ceil(1000 * min(retry.most_s, retry.first_s * retry.factor ** (tries - 1)))
    return at if retry.total_s is None or at <= began_at + 1000 * retry.total_s else 0


def _texts(value: Json) -> Iterator[str]:
    """All texts in a JSON value, names of members too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        yield from (text for item in value for text in _texts(item))
        yield from (text for item in (value.values() if isinstance(value, dict) else ()) for text in _texts(item))


async def result_of(work: Callable[P, Any], *args: P.args, **kwargs: P.kwargs) -> object:
    """The result of an async function, or of a plain function, which runs in a thread."""
    if is_coroutine_function(work):
        return await work(*args, **kwargs)
    result = await asyncio.to_thread(work, *args, **kwargs)
    return await result if inspect.isawaitable(result) else result


async def run_each(run: Callable[[int], Awaitable[object]], count: int, limit: int, tolerate: int) -> list[object]:
    """The results of ``run(0)`` to ``run(count - 1)``, ``limit`` at a time; errors stand in their places.

    The error after ``tolerate`` others cancels what runs, and is raised.
    """
    results: list[object] = [None] * count
    rest, failures = iter(range(count)), 0

    async def work() -> None:
        nonlocal failures
        while failures <= tolerate and (at := next(rest, None)) is not None:
            try:
                results[at] = await run(at)
            except Exception as error:
                failures += 1
                if failures > tolerate:
                    raise
                results[at] = error

    workers = [asyncio.ensure_future(work()) for _ in range(min(limit, count))]
    try:
        await asyncio.gather(*workers)
    finally:
        for one in workers:
            one.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    return results


def check_callable(act: str, work: object) -> None:
    """Raises TypeError if ``work`` is no function: a coroutine, or the result of a plain function, by its call."""
    if callable(work):
        return
    name = getattr(work, "__name__", "function")
    if inspect.iscoroutine(work):
        work.close()  # so Python does not warn that nobody awaits it
    kind = type(work).__name__
    raise TypeError(
        f'task.{act} got a {kind}: give the function, not its call: task.{act}("...", {name}, ...), with its arguments'
        " after it."
    )


def _check_arguments(path: str, result: StepResult, arguments: str) -> None:
    if result.arguments != arguments:
        stored_at = datetime.fromtimestamp(result.ended_at / 1000, UTC).isoformat(timespec="seconds")
        stored, new = (f"arguments with the digest {digest[:8]}" for digest in (result.arguments, arguments))
        what = f"The step {path!r} was stored with other arguments."
        raise RunDiffers(what, path, f"{stored}, at {stored_at}", new)


def _check_type(path: str, codec: Codec[Any] | None) -> None:
    """Raises TaskFailed, before the work, if the codec's type alone shows that no result can be stored whole."""
    if isinstance(codec, TypeCodec) and codec.refusal:
        raise TaskFailed(
            f"The step {path!r} cannot store its results: {codec.refusal}. Give the field another type, or the step a"
            " codec of your own."
        )


def stored_form(path: str, codec: Codec[Any] | None, value: object) -> tuple[Json, object]:
    """A result as it is stored, and as it is read back. Raises TaskFailed if that is another value.

    The agent gets the value that was read back: its first run is like each later run.
    """
    if codec is None and (
        value is None or type(value) is str or (type(value) is int and value.bit_length() <= INTEGER_BITS)
    ):
        return value, value  # the same after the round trip
    try:
        stored: Json = json.loads(dump_storable(codec.dump(value) if codec else value))
    except BadJson as error:
        raise TaskFailed(f"The step {path!r} gave a result that cannot be stored: {error}.") from None
    except Exception:  # noqa: BLE001 - any exception of a codec
        raise TaskFailed(f"The step {path!r} gave {_unfit(codec, value)}.") from None
    if codec is None:
        return stored, deepcopy(stored)
    kind, change = type(value).__name__, ""
    try:
        again = codec.load(stored)
        with suppress(RecursionError):  # it contains itself, and a codec of the author stores that
            change = find_change(value, again)
    except Exception as error:  # noqa: BLE001 - any exception of a codec
        raise TaskFailed(f"The step {path!r} gave a {kind} that cannot be read back{_reason(error)}.") from None
    if change:
        raise TaskFailed(f"The step {path!r} gave a {kind} that does not come back whole when it is read: {change}.")
    return stored, again


def _reason(error: Exception) -> str:
    """The first field that cannot be read, and why, without its content."""
    if not isinstance(error, ValidationError):
        return ""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"]))
    return f": {error.title}{'.' if place else ''}{place} ({first['type']})"


def _unfit(codec: Codec[Any] | None, value: object) -> str:
    """The reason why a result cannot be stored, and a remedy."""
    kind = type(value).__name__
    if isinstance(codec, ResultCodec):
        return f"a {kind}, which is not what its function's annotation says"
    if codec:
        return f"a {kind}, which its codec cannot store"
    try:
        raw_form(value)
    except (TypeError, RecursionError):  # no value
        return f"a {kind}, which is not a JSON value"
    annotation = "" if isinstance(value, JSON_TYPES) else f"annotate what its function returns (-> {kind}), or "
    return f"a {kind}, which is not a JSON value: {annotation}give codec=TypeCodec({kind})"


def _load_value(name: str, codec: Codec[Any] | None, stored: Json) -> object:
    """The result for the agent. Raises StepConflict if the codec cannot read the result of an earlier codec."""
    try:
        return codec.load(stored) if codec else deepcopy(stored)
    except Exception as error:  # noqa: BLE001 - any exception of a codec
        what = f"The codec of the step {name!r} cannot read its stored result{_reason(error)}."
        raise RunDiffers(what, name, f"a {_json_type(stored)}", f"the codec {type(codec).__name__}") from None


def _json_type(value: Json) -> str:
    return {dict: "object", list: "list", str: "text", type(None): "null"}.get(type(value), type(value).__name__)
