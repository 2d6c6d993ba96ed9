"""The kinds of fault that the fault run knows, each as a trial that is made and let run."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle
from random import Random
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from zlib import crc32

from a2a_serverless.domain.circuit_breaker import host_of
from a2a_serverless.domain.cursors import POST_DEADLINE_MS
from a2a_serverless.domain.outcomes import OutboundError, Outcome
from a2a_serverless.domain.queue_messages import DeliveryMessage
from tests.faults.plans import Broken
from tests.faults.trial import STEP_MS, Dice, Trial
from tests.faults.wire import HEARD, PHASES, Wire
from tests.simulated import Killed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from a2a_serverless.domain.queue_messages import QueueMessage

Kind: TypeAlias = "Callable[[int, int], Trial]"
"""(seed, tasks) -> the trial, run to its end."""

WRITES: Final = ("table.move_cursor", "table.record_attempt", "table.update_head", "table.store_open_breaker")
CHANCE: Final = 0.15
SOME: Final = 0.3


def thrown(what: type[BaseException], calls: Sequence[str], *, late: bool, chance: float = CHANCE) -> Kind:
    """Processes die, or services fail, at these calls."""

    def kind(seed: int, tasks: int) -> Trial:
        random = Random(seed)  # noqa: S311 - a seed, not a secret
        return Trial(seed, tasks, faults=Dice(what, calls, late=late, chance=chance, random=random)).run()

    return kind


def killed_on_the_wire(seed: int, tasks: int) -> Trial:
    """The notifier dies at some byte of its POST, from the lookup of the name to the last byte of the answer."""
    trial = Trial(seed, tasks)
    phases = cycle(PHASES)

    def pick() -> str | None:
        return next(phases) if trial.random.random() < CHANCE else None

    wire = Wire(lambda url, headers, body: trial.strangers.post(url, headers, body, POST_DEADLINE_MS), pick)
    trial.world.post = replace(trial.world.post, sender=wire)
    trial.run()
    trial.injected += len([phase for phase in wire.died if PHASES.index(phase) >= HEARD])
    return trial


def answered(*instead: Outcome) -> Kind:
    """Receivers answer some requests like that, without having seen them."""

    def kind(seed: int, tasks: int) -> Trial:
        trial = Trial(seed, tasks)

        def before(_: str) -> Outcome | None:
            return trial.random.choice(instead) if trial.random.random() < SOME else None

        trial.strangers.before = before
        return trial.run()

    return kind


def unheard(instead: Outcome) -> Kind:
    """Some requests arrive, but their answers do not."""

    def kind(seed: int, tasks: int) -> Trial:
        trial = Trial(seed, tasks)

        def after(_: str, outcome: Outcome) -> Outcome:
            if trial.random.random() >= CHANCE:
                return outcome
            trial.injected += 1
            return instead

        trial.strangers.after = after
        return trial.run()

    return kind


class Astray:
    """A queue with which something happens to some messages."""

    def __init__(self, queue: Any, fate: str, random: Random) -> None:
        self._queue = queue
        self._fate = fate
        self._random = random

    def enqueue_many(self, queues: Sequence[QueueMessage]) -> None:
        for message in queues:
            self.enqueue(message)

    def enqueue(self, message: QueueMessage, delay_s: int = 0) -> None:
        hit = self._random.random() < SOME
        if hit and self._fate == "lost":
            return
        late_s = self._random.randint(1, 60) if hit and self._fate == "late" else 0
        self._queue.enqueue(message, min(900, delay_s + late_s))
        if hit and self._fate == "doubled":
            self._queue.enqueue(message, delay_s)


def astray(fate: str) -> Kind:
    """Messages are lost, doubled, or late and so out of order."""

    def kind(seed: int, tasks: int) -> Trial:
        random = Random(seed)  # noqa: S311 - a seed, not a secret
        return Trial(seed, tasks, between=lambda queue: Astray(queue, fate, random)).run()

    return kind


def undisturbed(seed: int, tasks: int) -> Trial:
    return Trial(seed, tasks).run()


def stale_receipt(seed: int, tasks: int) -> Trial:
    """A message comes again while its first answer is still under way: the queue took it for forgotten."""
    trial = Trial(seed, tasks)

    def on_message(message: QueueMessage) -> None:
        if isinstance(message, DeliveryMessage) and trial.random.random() < SOME:
            trial.world.queue.enqueue(message)
            trial.world.queue.enqueue(message, 1)

    trial.world.on_message = on_message
    trial.strangers.takes = 400
    return trial.run()


class Jumping:
    """A clock that is another few seconds off for each message."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self.off = 0

    def now(self) -> int:
        return self._trial.world.now + self.off

    def sleep(self, seconds: float) -> None:
        self._trial.world.wait(int(seconds * 1000))


def clock_jumps(seed: int, tasks: int) -> Trial:
    trial = Trial(seed, tasks)
    clock = Jumping(trial)
    trial.world.post = replace(trial.world.post, clock=clock)

    def on_message(_: QueueMessage) -> None:
        clock.off = trial.random.choice([-40_000, -1500, 0, 0, 0, 1500, 40_000])
        trial.injected += abs(clock.off) > 2000

    trial.world.on_message = on_message
    return trial.run()


def gone(seed: int, tasks: int) -> Trial:
    """Some receivers answer 410: their configurations end, by the rules."""
    trial = Trial(seed, tasks)

    def before(url: str) -> Outcome | None:
        if trial.random.random() < CHANCE / 5:
            trial.ended_by_rule.add(url)
        return Outcome(status=410) if url in trial.ended_by_rule else None

    trial.strangers.before = before
    return trial.run()


def moved_away(seed: int, tasks: int) -> Trial:
    """Some receivers redirect, once or for ever: the latter are given up, and found by the operator."""
    trial = Trial(seed, tasks)

    def before(url: str) -> Outcome | None:
        if crc32(url.encode()) % 10 == 0:
            trial.ended_by_rule.add(url)
        once = trial.random.random() < CHANCE / 3
        return Outcome(status=302) if once or url in trial.ended_by_rule else None

    trial.strangers.before = before
    return trial.run()


def rotation(seed: int, tasks: int) -> Trial:
    """Keys turn while notifications are on their way."""
    trial = Trial(seed, tasks)
    trial.world.settle()
    trial.world.now += 500_000
    trial.rotate()

    def meddle() -> None:
        for number in range(12):
            trial.world.plan(number * STEP_MS, trial.rotate)
        trial.world.plan(5 * STEP_MS, lambda: setattr(trial.world, "now", trial.world.now + 430_000))

    return trial.run(meddle)


def revocation(seed: int, tasks: int) -> Trial:
    """The signing key is revoked in an emergency; receivers that do not know the next one yet look for it."""
    trial = Trial(seed, tasks)
    return trial.run(lambda: trial.world.plan(6 * STEP_MS, trial.revoke))


def keys_down(seed: int, tasks: int) -> Trial:
    """Receivers cannot fetch the key set for a while, from before their first notification on."""
    trial = Trial(seed, tasks)
    trial.strangers.keys_down = True

    def back() -> None:
        trial.strangers.keys_down = False

    return trial.run(lambda: trial.world.plan(9 * STEP_MS, back))


def replaced(seed: int, tasks: int) -> Trial:
    """Configurations are replaced while their notifications are on their way."""
    trial = Trial(seed, tasks)
    trial.strangers.takes = 300

    def meddle() -> None:
        for number in range(tasks):
            trial.world.plan(number * 90 + 3000, change)

    def change() -> None:
        hook = trial.random.choice(trial.hooks)
        trial.replace(hook, f"{hook.url}/again")

    return trial.run(meddle)


def deleted(seed: int, tasks: int) -> Trial:
    """Configurations are deleted while their notifications are on their way."""
    trial = Trial(seed, tasks)
    trial.strangers.takes = 300

    def meddle() -> None:
        for number in range(tasks // 2):
            trial.world.plan(number * 180 + 3000, lambda: trial.delete(trial.random.choice(trial.hooks)))

    return trial.run(meddle)


def many_configs(seed: int, tasks: int) -> Trial:
    """As many configurations as a task may have: 1,000 in all when there are 50 tasks."""
    return Trial(seed, tasks, configs=20, chunks=1).run()


def away(seed: int, tasks: int) -> Trial:
    """Receivers are away while more happens than they shall hear one by one."""
    trial = Trial(seed, min(tasks, 6), chunks=150)
    left, back = trial.world.now + 4000, trial.world.now + 180_000
    trial.strangers.before = lambda _: Outcome(error=OutboundError.CONNECT) if left < trial.world.now < back else None
    return trial.run()


def dead_host(seed: int, tasks: int) -> Trial:
    """One host of all never answers; it costs the others nothing and is given up in the end."""
    trial = Trial(seed, tasks)
    dead = "h1.example.com"

    def before(url: str) -> Outcome | None:
        if host_of(url) != dead:
            return None
        trial.ended_by_rule.add(url)
        return Outcome(error=OutboundError.TIMEOUT)

    trial.strangers.before = before
    return trial.run()


def shy(seed: int, tasks: int) -> Trial:
    """The first answers to the challenge do not echo it."""
    trial = Trial(seed, tasks)
    shown: set[str] = set()

    def after(url: str, outcome: Outcome) -> Outcome:
        if url in shown or not outcome.body:
            return outcome
        shown.add(url)
        return replace(outcome, body=b"what?")

    trial.strangers.after = after
    return trial.run()


def everything(seed: int, tasks: int) -> Trial:
    """Deaths, lost answers, failing receivers and lost messages, all at once."""
    random = Random(seed)  # noqa: S311 - a seed, not a secret
    faults = Dice(Killed, ("table.", "queue.", "receiver.", "signer."), late=seed % 2 == 0, chance=0.03, random=random)
    trial = Trial(seed, tasks, faults=faults, between=lambda queue: Astray(queue, "lost", random))
    bad = [Outcome(status=500), Outcome(status=429, retry_after="3"), Outcome(error=OutboundError.CONNECT)]
    trial.strangers.before = lambda _: random.choice(bad) if random.random() < CHANCE else None
    return trial.run()


KINDS: Final[dict[str, Kind]] = {
    "nothing goes wrong": undisturbed,
    "killed before a write": thrown(Killed, WRITES, late=False),
    "killed after a write": thrown(Killed, WRITES, late=True),
    "killed before a read": thrown(
        Killed, ("table.get_cursor", "table.get_config", "table.read_head", "table.read"), late=False
    ),
    "killed before the POST": thrown(Killed, ("receiver.post",), late=False),
    "killed after the POST": thrown(Killed, ("receiver.post",), late=True),
    "killed at a byte of the POST": killed_on_the_wire,
    "killed while signing": thrown(Killed, ("signer.", "sealer."), late=True),
    "killed before enqueuing": thrown(Killed, ("queue.enqueue",), late=False),
    "killed after enqueuing": thrown(Killed, ("queue.enqueue",), late=True),
    "table throttles": thrown(Broken, ("table.",), late=False, chance=0.05),
    "table times out after commit": thrown(Broken, WRITES, late=True),
    "queue fails in a batch": thrown(Broken, ("queue.enqueue",), late=False, chance=SOME),
    "queue times out after sending": thrown(Broken, ("queue.enqueue",), late=True, chance=SOME),
    "keys cannot be read": thrown(Broken, ("signer.", "sealer."), late=False),
    "messages lost": astray("lost"),
    "messages doubled": astray("doubled"),
    "messages late and out of order": astray("late"),
    "message comes again under way": stale_receipt,
    "clocks jump": clock_jumps,
    "receiver answers 500": answered(Outcome(status=500), Outcome(status=503)),
    "receiver answers 429": answered(Outcome(status=429, retry_after="7")),
    "receiver answers 410": gone,
    "receiver redirects": moved_away,
    "connection refused or reset": answered(
        Outcome(error=OutboundError.CONNECT), Outcome(error=OutboundError.RESET, connected=True)
    ),
    "kept connection was gone": answered(Outcome(error=OutboundError.RESET, connected=True, reused=True)),
    "reset before the answer": unheard(Outcome(error=OutboundError.RESET, connected=True, request_sent=True)),
    "answer drips past the deadline": unheard(Outcome(error=OutboundError.TIMEOUT, connected=True, request_sent=True)),
    "answer is no HTTP": unheard(Outcome(error=OutboundError.PROTOCOL, connected=True, request_sent=True)),
    "answer is a giant": unheard(Outcome(status=200, error=OutboundError.TOO_LARGE)),
    "DNS flips": answered(Outcome(error=OutboundError.DNS), Outcome(error=OutboundError.REFUSED)),
    "TLS fails": answered(Outcome(error=OutboundError.TLS)),
    "keys rotate": rotation,
    "signing key revoked": revocation,
    "key set cannot be had": keys_down,
    "challenge not echoed at first": shy,
    "configuration replaced": replaced,
    "configuration deleted": deleted,
    "20 configurations each": many_configs,
    "receiver away for long": away,
    "one dead host": dead_host,
    "everything at once": everything,
}
