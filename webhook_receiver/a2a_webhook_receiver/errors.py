"""Why a request was refused: one tree, so that one table turns it into answers and a reason never depends on text.

``code`` names the rule that was broken, in the inbox and in the log. ``step`` names the check that failed. Whoever sent
an unauthentic request learns neither: every ``Unauthentic`` gets the same answer.
"""

from typing import ClassVar, Literal, get_args

Step = Literal["transport", "token", "key", "signature", "claims", "body hash", "expectation", "body", "replay"]
STEPS: tuple[Step, ...] = get_args(Step)
"""The checks, in the order in which they run."""


class Refused(Exception):
    """A request that has no effect. The message says what was expected, without any secret."""

    code: ClassVar[str] = "refused"
    step: ClassVar[Step] = "transport"


class Unauthentic(Refused):
    """Nothing proves that our issuer sent this to us, now, about something that we asked for."""


class NoSignature(Unauthentic):
    """Neither header carries a token."""

    code = "no-signature"
    step = "token"


class DuplicateHeader(Unauthentic):
    """A header that decides something came twice: two readers could each pick another one."""

    code = "duplicate-header"
    step = "transport"


class AmbiguousSignature(Unauthentic):
    """Both headers carry a token of ours."""

    code = "ambiguous-signature"
    step = "token"


class MalformedToken(Unauthentic):
    """Not three segments of canonical base64url, or its header is not the JSON object that we know."""

    code = "malformed-token"
    step = "token"


class ForbiddenHeader(Unauthentic):
    """The token's header names more than ``alg``, ``typ`` and ``kid``: nothing else in it is trusted or understood."""

    code = "forbidden-header"
    step = "token"


class WrongAlgorithm(Unauthentic):
    """Any algorithm but ES256."""

    code = "wrong-algorithm"
    step = "token"


class WrongType(Unauthentic):
    """A token made for another purpose."""

    code = "wrong-type"
    step = "token"


class UnknownKey(Unauthentic):
    """The issuer does not publish the key that the token names."""

    code = "unknown-key"
    step = "key"


class WrongSignature(Unauthentic):
    """The named key did not sign this token."""

    code = "wrong-signature"
    step = "signature"


class MalformedClaims(Unauthentic):
    """A claim is missing or has another type than the one that we know."""

    code = "malformed-claims"
    step = "claims"


class WrongIssuer(Unauthentic):
    """Signed for another issuer."""

    code = "wrong-issuer"
    step = "claims"


class WrongAudience(Unauthentic):
    """Meant for another receiver."""

    code = "wrong-audience"
    step = "claims"


class Expired(Unauthentic):
    """Its time is over, by more than the clocks may differ."""

    code = "expired"
    step = "claims"


class NotYetValid(Unauthentic):
    """Issued in the future, by more than the clocks may differ."""

    code = "not-yet-valid"
    step = "claims"


class LivesTooLong(Unauthentic):
    """Valid for longer than five minutes: a thief would have too much time."""

    code = "lives-too-long"
    step = "claims"


class WrongBody(Unauthentic):
    """Not the body that was signed."""

    code = "wrong-body"
    step = "body hash"


class UnknownTask(Unauthentic):
    """We never asked for this task."""

    code = "unknown-task"
    step = "expectation"


class WrongToken(Unauthentic):
    """``X-A2A-Notification-Token`` is missing, or is not the one that we gave for this task."""

    code = "wrong-token"
    step = "expectation"


class WrongCredentials(Unauthentic):
    """``Authorization`` does not carry the credentials that we gave for this task."""

    code = "wrong-credentials"
    step = "expectation"


class UnexpectedChallenge(Unauthentic):
    """Somebody registers our address while we expect nothing."""

    code = "unexpected-challenge"
    step = "expectation"


class Replayed(Unauthentic):
    """Its token came before, with something else."""

    code = "replayed"
    step = "replay"


class WrongTask(Unauthentic):
    """The body speaks of another task than the token."""

    code = "wrong-task"
    step = "body"


class Unreadable(Refused):
    """Authentic, but its body is not what A2A says it should be. Sending it again would not help."""

    code = "unreadable-body"
    step = "body"


class UnsupportedVersion(Unreadable):
    """Speaks a version of A2A other than 1.0 and 0.3."""

    code = "unsupported-version"
    step = "body"


class UnsupportedMedia(Refused):
    """Not JSON, or compressed."""

    code = "unsupported-media"
    step = "transport"


class TooLarge(Refused):
    """The body is longer than we read."""

    code = "too-large"
    step = "transport"


class TooSlow(Refused):
    """The body did not arrive in time."""

    code = "too-slow"
    step = "transport"


class TryLater(Refused):
    """We cannot decide now. ``retry_after`` says in how many seconds it is worth another attempt."""

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class KeysUnavailable(TryLater):
    """The issuer's keys cannot be had now."""

    code = "keys-unavailable"
    step = "key"


class StillWorking(TryLater):
    """An earlier attempt of the same notification is being worked on."""

    code = "still-working"
    step = "replay"
