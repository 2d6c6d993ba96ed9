"""What the play of a stored task against other code has shown."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from difflib import SequenceMatcher
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, cast

from a2a_serverless.domain.agent_errors import BudgetExceeded, StepConflict
from a2a_serverless.domain.events import StatusEvent
from a2a_serverless.domain.record_names import CALL, EVENT, TIMER
from a2a_serverless.domain.states import INTERRUPTED
from a2a_serverless.domain.waits import WaitKind
from a2a_serverless.engine.observer import ActKind
from a2a_serverless.testing.effects import EffectRefused
from a2a_serverless.testing.rehearsal_acts import ActName, Rested, act_name, line_of
from a2a_serverless.testing.unknown import UnknownUsed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from a2a_serverless.domain.model import JsonObject
    from a2a_serverless.testing.rehearsal_acts import RehearsedActs, StandIn

LISTED: Final = 5
ALIKE: Final = 0.5
LONGEST: Final = 1000
WAKING: Final = {WaitKind.SLEEP, WaitKind.CALL, WaitKind.EVENT, WaitKind.RETRY}
"""Such a wait beside a question wakes the task before the answer comes."""
KEEP_NAME: Final = "Keep the name, or accept that this task does the work, and pays for it, once more."
NEW_NAME: Final = (
    "Give the step another name, or keep the old path for tasks that began under it (docs/code-changes.md). A task that"
    " has failed goes on with `tasks retry --from` this step."
)
KEEP_QUESTION: Final = "Keep the text of a question that tasks wait for, or accept that the client is asked again."


class RehearsalVerdict(StrEnum):
    """What happens to a task under other code, the worst first.

    ``FAILS``: the task fails. ``AGAIN``: work, a call, a question or a sleep happens once more. ``DROPPED``: something
    that was done is not used. ``UNSEEN``: the play could not come to all that is stored. ``FITS``: the code comes to
    all of it, and then goes on.
    """

    FAILS = "fails"
    AGAIN = "again"
    DROPPED = "dropped"
    UNSEEN = "unseen"
    FITS = "fits"

    @property
    def is_red(self) -> bool:
        """Whether the change hurts the task."""
        return self in {RehearsalVerdict.FAILS, RehearsalVerdict.AGAIN}


@dataclass(frozen=True)
class Finding:
    """``stored`` are acts of the log, ``came`` those of the code at ``line``. ``remedy`` says what helps.

    ``text`` is of an exception: it, and the names of acts, may contain what clients and models said.
    """

    verdict: RehearsalVerdict
    what: str
    stored: tuple[ActName, ...] = ()
    came: tuple[ActName, ...] = ()
    line: str = ""
    remedy: str = ""
    text: str = ""


@dataclass
class Rehearsal:
    """The play of one task. ``waits`` are what the task waits for; of ``acts`` stored acts the code came to ``read``.

    ``is_stuck`` says that the code still runs.
    """

    task: str
    agent: str
    waits: tuple[ActName, ...] = ()
    acts: int = 0
    read: int = 0
    new_acts: tuple[ActName, ...] = ()
    findings: list[Finding] = field(default_factory=list)
    is_stuck: bool = False

    @property
    def verdict(self) -> RehearsalVerdict:
        """The worst of the findings."""
        verdicts = {finding.verdict for finding in self.findings}
        return next((verdict for verdict in RehearsalVerdict if verdict in verdicts), RehearsalVerdict.FITS)

    def add(self, verdict: RehearsalVerdict, what: str, **fields: Any) -> None:  # noqa: ANN401 - those of a finding
        """Adds a finding."""
        self.findings.append(Finding(verdict, what, **fields))

    def json_form(self) -> JsonObject:
        """The rehearsal for programs."""
        members = asdict(replace(self, findings=[])) | {"findings": [*map(asdict, self.findings)]}
        return cast("JsonObject", _json_form(members | {"verdict": self.verdict}))

    @classmethod
    def of(cls, form: Any) -> Rehearsal:  # noqa: ANN401 - JSON
        """The rehearsal of a ``json_form``."""
        findings = [
            Finding(**one | {"verdict": RehearsalVerdict(one["verdict"])} | _names(one, "stored", "came"))
            for one in form.get("findings", ())
        ]
        names = _names(form, "waits", "new_acts")
        return cls(
            **{name: value for name, value in form.items() if name != "verdict"} | names | {"findings": findings}
        )

    def with_names(self, show: Callable[[str], str]) -> Rehearsal:
        """The rehearsal with other names of acts, and without the texts of exceptions."""

        def hide(names: tuple[ActName, ...]) -> tuple[ActName, ...]:
            return tuple(name._replace(path=show(name.path)) for name in names)

        findings = [replace(one, stored=hide(one.stored), came=hide(one.came), text="") for one in self.findings]
        return replace(self, waits=hide(self.waits), new_acts=hide(self.new_acts), findings=findings)

    def __str__(self) -> str:
        waits = ", ".join(map(str, self.waits)) or "nothing"
        lines = [
            f"{self.verdict}: task {self.task} of {self.agent}, {self.read} of {self.acts} acts, waits for {waits}"
        ]
        for finding in self.findings:
            lines.append(f"  {finding.what}")
            lines += [f"    stored: {', '.join(map(str, finding.stored))}"] * bool(finding.stored)
            lines += [f"    came: {', '.join(map(str, finding.came))}"] * bool(finding.came)
            lines += [f"    {finding.line}"] * bool(finding.line)
            lines += [f"    {finding.remedy}"] * bool(finding.remedy)
            lines += [f"    {finding.text}"] * bool(finding.text)
        return "\n".join(lines)


def _json_form(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Without empty members; acts are objects."""
    if isinstance(value, dict):
        return {name: _json_form(member) for name, member in value.items() if member not in ("", (), False)}
    if isinstance(value, ActName):
        return {"kind": str(value.kind), "path": value.path}
    if isinstance(value, list | tuple):
        return [_json_form(one) for one in value]
    return str(value) if isinstance(value, StrEnum) else value


def _names(form: Any, *members: str) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return {name: tuple(ActName(**one) for one in form[name]) for name in members if name in form}


class Judge:
    """Finds what the play of a task has shown. ``error`` ended it; ``is_over`` says that the function has ended."""

    def __init__(
        self, rehearsal: Rehearsal, acts: RehearsedActs, error: BaseException | None, *, is_over: bool
    ) -> None:
        self._rehearsal, self._acts, self._error, self._is_over = rehearsal, acts, error, is_over
        self._add, self._head = rehearsal.add, acts.head
        self._has_units = acts.execution.has_units
        self._unread = acts.unread()

    def judge(self, refusals: Sequence[str]) -> None:
        """Adds what it finds to the rehearsal. ``refusals`` are the effects that were refused."""
        acts, rehearsal = self._acts, self._rehearsal
        rehearsal.acts = len(acts.stored())
        rehearsal.read = rehearsal.acts - len(self._unread) - len(acts.unread(hidden=True))
        rehearsal.new_acts = tuple(one.name for one in acts.new_acts)
        self._judge_renamed()
        for guess in acts.guesses:
            what = f"the arguments of a stored step come from a new {guess.source}: the task fails if they differ"
            stored = (ActName(ActKind.STEP, guess.path),)
            self._add(RehearsalVerdict.FAILS, what, stored=stored, line=guess.line, remedy=NEW_NAME)
        if refusals:
            self._add(
                RehearsalVerdict.UNSEEN,
                f"code outside of steps has an effect, which was refused: {', '.join(dict.fromkeys(refusals))}",
                remedy="It happens in each run. Put it into a step.",
                line=line_of(self._error) if isinstance(self._error, EffectRefused) else "",
            )
        if not (self._judge_changed_question() or self._judge_error(is_refused=bool(refusals))):
            self._judge_rest()

    def _judge_renamed(self) -> None:
        for new, old in self._acts.lent.items():
            self._add(
                RehearsalVerdict.AGAIN,
                "a step has another name: it does its work again",
                stored=(ActName(ActKind.STEP, old),),
                came=(ActName(ActKind.STEP, new),),
                line=self._acts.lines[new],
                remedy=KEEP_NAME,
            )

    @property
    def _is_asking(self) -> bool:
        return self._head.parked and self._head.state in INTERRUPTED and bool(self._acts.questions)

    def _judge_changed_question(self) -> bool:
        """Whether another question stands in the place of the open one."""
        acts = self._acts
        if not self._is_asking or acts.questions[-1] in acts.asked:
            return False
        questions = [one for one in acts.new_acts if one.act.question]
        # If the code has looked at the answer, a new question may stand in front of the open one: the texts decide.
        new = next((one for one in questions if not acts.used[0] or self._is_alike(one)), None)
        if new:
            what = "the client is asked again: its open question has another text, or stands in another place"
            self._add(RehearsalVerdict.AGAIN, what, line=new.line, remedy=KEEP_QUESTION)
        return new is not None

    def _is_alike(self, new: StandIn) -> bool:
        """Whether a new question is the open one with another text, or in another place."""
        statuses = (one for one in reversed(self._acts.events) if isinstance(one, StatusEvent) and one.message)
        asked = next((one.message.text() for one in statuses if one.state in INTERRUPTED and one.message), "")
        text = new.act.question.text() if new.act.question else ""
        return SequenceMatcher(None, asked[:LONGEST], text[:LONGEST]).ratio() > ALIKE

    def _judge_error(self, *, is_refused: bool) -> bool:
        """Whether an error has ended the play."""
        acts, error = self._acts, self._error
        guesses = [one for one in acts.assumed if one.act.path not in acts.lent and one.act.kind is not ActKind.SLEEP]
        came = tuple(one.name for one in guesses)
        is_guess = bool(guesses or acts.reads_secret or is_refused)
        if isinstance(error, StepConflict):
            path, line = next(iter(acts.conflicts.items()), ("", ""))
            stored = (ActName(ActKind.STEP, path),) if path else ()
            what = "the arguments of a stored step have changed" if path else "the code no longer fits what is stored"
            self._add(
                RehearsalVerdict.UNSEEN if is_guess else RehearsalVerdict.FAILS,
                f"the task fails with StepConflict: {what}",
                stored=stored,
                came=came,
                line=line or line_of(error),
                remedy=NEW_NAME,
                text=str(error),
            )
        elif acts.used[0]:
            is_left = acts.pending() or bool(acts.unread(hidden=True))
            source, line = acts.used
            if is_left or not (self._head.parked or guesses):
                self._add(
                    RehearsalVerdict.UNSEEN,
                    f"the code decides by the result of a new {source}, which has not happened",
                    stored=tuple(map(act_name, self._unread[:LISTED])),
                    came=came,
                    line=line,
                    remedy="A new act in front of stored ones is right if the code then comes to them. If it is a"
                    " stored act under another name, it happens again.",
                )
        elif error is None or isinstance(error, Rested):
            return False
        elif not isinstance(error, EffectRefused):
            self._judge_exception(error, came, is_guess=is_guess)
        return True

    def _judge_exception(self, error: BaseException, came: tuple[ActName, ...], *, is_guess: bool) -> None:
        name, is_left = type(error).__name__, self._head.parked or self._acts.pending()
        is_failure = isinstance(error, Exception) and (self._is_over or isinstance(error, BudgetExceeded))
        if is_failure and is_left and not is_guess:
            what = f"the code raises {name} before it comes to where the task waits"
            self._add(RehearsalVerdict.FAILS, what, line=line_of(error), text=str(error))
        elif isinstance(error, UnknownUsed):
            self._add(RehearsalVerdict.UNSEEN, f"the code decides by the result of a new {error.source}", came=came)
        else:
            self._add(
                RehearsalVerdict.UNSEEN, f"the play ends with {name}", came=came, line=line_of(error), text=str(error)
            )

    def _judge_rest(self) -> None:
        """The code waits, or its function has ended."""
        acts, unread = self._acts, self._unread
        hidden, inside = acts.unread(hidden=True), acts.inside
        is_inside = any(wait.name.startswith(inside) for wait in acts.open_waits if inside)
        if hidden or is_inside:
            stored = tuple(map(act_name, hidden[:LISTED]))
            self._add(
                RehearsalVerdict.UNSEEN, "acts within a step that has not ended: its work is not called", stored=stored
            )
        if self._has_units:
            unread = [name for name in unread if name.startswith((CALL, EVENT, TIMER))]
        self._judge_unread(unread)
        if not (self._has_units or unread or is_inside):
            self._judge_questions()
            if not hidden:
                self._judge_waits()

    def _judge_unread(self, unread: Sequence[str]) -> None:
        if not unread:
            return
        acts = self._acts
        names, new = tuple(map(act_name, unread)), acts.new_acts
        kinds = {name.kind for name in names}
        is_again = any(one.act.kind in kinds for one in new)
        self._add(
            RehearsalVerdict.AGAIN if is_again else RehearsalVerdict.DROPPED,
            "the code does not come to stored acts, but to new ones: the work happens again"
            if is_again
            else "the code does not come to stored acts: what was done is not used",
            stored=names[:LISTED],
            came=tuple(one.name for one in new[:LISTED]),
            line=next((one.line for one in new if one.act.kind in kinds), ""),
            remedy=KEEP_NAME if is_again else "",
        )

    def _judge_questions(self) -> None:
        acts = self._acts
        if acts.missing_questions():
            new = next((one for one in acts.new_acts if one.act.kind is ActKind.QUESTION), None)
            what = (
                "the client is asked again: a question has another text" if new else "a question is not asked any more"
            )
            verdict = RehearsalVerdict.AGAIN if new else RehearsalVerdict.DROPPED
            if new or not acts.has_open_calls:  # a called agent's question is not known here
                verdict = RehearsalVerdict.UNSEEN if acts.has_open_calls else verdict
                self._add(verdict, what, line=new.line if new else "", remedy=KEEP_QUESTION)
            return
        if not self._is_asking:
            return
        waiting = {ActKind.SLEEP, ActKind.QUESTION, ActKind.EVENT, ActKind.CALL}
        before = next((one for one in acts.assumed if one.is_before_question and one.act.kind in waiting), None)
        kind, line = (before.act.kind, before.line) if before else acts.new_message
        if kind:
            # Without a wake the answer comes first, and the client notices nothing. A reminder asks again anyway.
            is_woken = any(wait.kind in WAKING for wait in acts.open_waits)
            self._add(
                RehearsalVerdict.AGAIN if is_woken else RehearsalVerdict.FITS,
                f"a new {kind} in front of the open question closes it: if the task is woken before the answer"
                " comes, the client is asked again",
                line=line,
                remedy="Put it behind the question, or keep the old path for tasks that wait.",
            )

    def _judge_waits(self) -> None:
        lost = self._acts.lost_waits()
        if not lost:
            return
        waits = tuple(ActName(wait.kind, wait.name) for wait in lost)
        new = [one for one in self._acts.new_acts if any(one.act.kind == wait.kind for wait in lost)]
        what = "the task waits for something else: the wait begins anew" if new else "the code does not wait any more"
        verdict = RehearsalVerdict.AGAIN if new else RehearsalVerdict.DROPPED
        came = tuple(one.name for one in new)
        self._add(verdict, what, stored=waits, came=came, line=new[0].line if new else "")


def waits_of(acts: RehearsedActs) -> tuple[ActName, ...]:
    """What the task waits for."""
    return tuple(
        ActName(wait.kind, "" if wait.kind == WaitKind.QUESTION else wait.name)
        for wait in acts.open_waits
        if wait.kind != WaitKind.REMINDER
    )
