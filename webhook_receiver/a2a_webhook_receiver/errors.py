"""The reasons for which a request is refused, as one class tree: classes map to answers, so no code parses messages.

``code`` names the broken rule, in the inbox and in the log. ``step`` names the check that failed. The sender of an
unauthentic request gets neither: every ``Unauthentic`` has the same answer.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, Literal, get_args

from a2a_webhook_receiver.subject import Subject

Step = Literal["transport", "token", "key", "signature", "claims", "body hash", "expectation", "body", "replay"]
STEPS: tuple[Step, ...] = get_args(Step)
"""The checks, in the order in which they run."""


class Refused(Exception):
    """A request that has no effect. The message says what is wrong, without any secret.

    ``reason`` is the sentence of the log: it is the same for every request, so it quotes none. ``remedy`` says what the
    receiver's operator can do. ``subject`` is the event that an authentic request is about, and None before the request
    is known to be authentic. ``expected`` and ``received`` are the values that differ; empty if they would be secrets.
    """

    code: ClassVar[str] = "refused"
    reason: ClassVar[str] = "refused"
    remedy: ClassVar[str] = "Let no proxy change the request. A request of somebody else needs no remedy."
    step: ClassVar[Step] = "transport"
    subject: Subject | None = None

    def __init__(self, message: str, expected: str = "", received: str = "") -> None:
        super().__init__(message)
        self.expected, self.received = expected, received


@contextmanager
def naming(subject: Subject) -> Iterator[None]:
    """Names the event of an authentic request in the refusals that the block raises."""
    try:
        yield
    except Refused as refusal:
        refusal.subject = subject
        raise


class Unauthentic(Refused):
    """No proof that our issuer sent this to us, recently, about something that we asked for."""


class NoSignature(Unauthentic):
    """Neither header holds a token."""

    code = "no-signature"
    reason = "no signed token in Authorization or X-A2A-Notification-JWT"
    remedy = "Let no proxy remove Authorization or X-A2A-Notification-JWT. A request that is no webhook needs none."
    step = "token"


class DuplicateHeader(Unauthentic):
    """A header that is used came twice: two readers could each use another value."""

    code = "duplicate-header"
    reason = "a header that is used comes twice"
    step = "transport"


class AmbiguousSignature(Unauthentic):
    """Both headers hold a token of the issuer's type."""

    code = "ambiguous-signature"
    reason = "a signed token in two headers"
    step = "token"


class MalformedToken(Unauthentic):
    """The token is not three segments of canonical base64url, or its header is not the expected JSON object."""

    code = "malformed-token"
    reason = "the token is not three segments of base64url with a JSON header"
    step = "token"


class ForbiddenHeader(Unauthentic):
    """The token's header holds more than ``alg``, ``typ`` and ``kid``."""

    code = "forbidden-header"
    reason = "the token's header holds more than alg, typ and kid"
    step = "token"


class WrongAlgorithm(Unauthentic):
    """The algorithm is not ES256."""

    code = "wrong-algorithm"
    reason = "the algorithm is not ES256"
    step = "token"


class WrongType(Unauthentic):
    """The token was made for another purpose."""

    code = "wrong-type"
    reason = "the token was made for another purpose"
    step = "token"


class UnknownKey(Unauthentic):
    """The issuer does not publish the key that the token names."""

    code = "unknown-key"
    reason = "the issuer publishes no such key"
    remedy = "Set ISSUER to the base URL of the deployment that sends, and JWKS_URL to its keys."
    step = "key"


class WrongSignature(Unauthentic):
    """The named key did not sign this token."""

    code = "wrong-signature"
    reason = "the key that the token names did not sign it"
    step = "signature"


class MalformedClaims(Unauthentic):
    """A claim is missing or has the wrong type."""

    code = "malformed-claims"
    reason = "a claim is missing or has the wrong type"
    step = "claims"


class WrongIssuer(Unauthentic):
    """The token is of another issuer."""

    code = "wrong-issuer"
    reason = "the token is of another issuer than ISSUER"
    remedy = "Set ISSUER to the base URL of the deployment that sends, to the letter."
    step = "claims"


class WrongAudience(Unauthentic):
    """The token is for another receiver."""

    code = "wrong-audience"
    reason = "the token is for another URL than AUDIENCE"
    remedy = "Set AUDIENCE to the URL that clients register, to the letter."
    step = "claims"


class Expired(Unauthentic):
    """The token has expired, by more than the tolerated clock difference."""

    code = "expired"
    reason = "the token has expired by this machine's clock"
    remedy = "Set this machine's clock. An old request that came again needs no remedy."
    step = "claims"


class NotYetValid(Unauthentic):
    """The token was issued in the future, by more than the tolerated clock difference."""

    code = "not-yet-valid"
    reason = "the token is of the future by this machine's clock"
    remedy = "Set this machine's clock."
    step = "claims"


class LivesTooLong(Unauthentic):
    """The token is valid for more than five minutes: a stolen one could be used for too long."""

    code = "lives-too-long"
    reason = "the token is valid for more than five minutes"
    step = "claims"


class WrongBody(Unauthentic):
    """The body is not the one that was signed."""

    code = "wrong-body"
    reason = "the body is not the one that was signed"
    remedy = "Let no proxy change the body."
    step = "body hash"


class UnknownTask(Unauthentic):
    """Its token is registered for no task, for another task, or no longer; and its task is not registered."""

    code = "unknown-task"
    reason = "its token is not registered for this task, or has expired"
    remedy = "Register a new token for each task, or set WEBHOOK_TOKEN."
    step = "expectation"


class NoToken(UnknownTask):
    """It has no ``X-A2A-Notification-Token``, and its task is not registered."""

    reason = "it has no token, and its task is not registered"
    remedy = "Send the token that this receiver gave you, as the token of the push notification configuration."


class WrongToken(Unauthentic):
    """``X-A2A-Notification-Token`` is missing, or is not the one registered for this task."""

    code = "wrong-token"
    reason = "not the token that is registered for this task"
    remedy = "Send the token that is registered for this task, or register the new one."
    step = "expectation"


class WrongCredentials(Unauthentic):
    """``Authorization`` does not hold the credentials registered for this task."""

    code = "wrong-credentials"
    reason = "not the credentials that are registered for this task"
    remedy = "Register the whole value of Authorization: the scheme and the credentials."
    step = "expectation"


class UnexpectedChallenge(Unauthentic):
    """Somebody registered our URL for notifications, but no token or task is registered here."""

    code = "unexpected-challenge"
    reason = "a challenge, but no token or task is registered here"
    remedy = "Register a token before you send the message."
    step = "expectation"


class Replayed(Unauthentic):
    """The token was used before, with other content."""

    code = "replayed"
    reason = "the token was used before with other content"
    step = "replay"


class WrongTask(Unauthentic):
    """The body is about another task than the token."""

    code = "wrong-task"
    reason = "the body is about another task than the token"
    step = "body"


class Unreadable(Refused):
    """Authentic, but the body does not have the form that A2A requires. Sending it again would not help."""

    code = "unreadable-body"
    reason = "the body is not a notification of its version of A2A"
    remedy = "Let no proxy change the body. Without a proxy it is the mistake of the sender."
    step = "body"


class UnsupportedVersion(Unreadable):
    """The version of A2A is neither 1.0 nor 0.3."""

    code = "unsupported-version"
    reason = "the version of A2A is neither 1.0 nor 0.3"
    remedy = "Let no proxy change A2A-Version."
    step = "body"


class UnsupportedMedia(Refused):
    """The body is not JSON, or is compressed."""

    code = "unsupported-media"
    reason = "the body is not plain JSON in UTF-8"
    remedy = "Let no proxy change Content-Type or compress the body."
    step = "transport"


class TooLarge(Refused):
    """The body is longer than the limit."""

    code = "too-large"
    reason = "the body is longer than the limit"
    remedy = "Set MAX_BODY_BYTES to more."
    step = "transport"


class TooSlow(Refused):
    """The body did not arrive in time."""

    code = "too-slow"
    reason = "the body did not arrive in time"
    remedy = "The sender tries again. If this comes often, set BODY_SECONDS to more."
    step = "transport"


class TryLater(Refused):
    """The receiver cannot decide now. ``retry_after`` is the number of seconds after which to try again."""

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class KeysUnavailable(TryLater):
    """The issuer's keys cannot be fetched now."""

    code = "keys-unavailable"
    reason = "the issuer's keys cannot be fetched now"
    remedy = "Let this receiver reach JWKS_URL. The sender tries again."
    step = "key"


class StillWorking(TryLater):
    """An earlier attempt of the same notification is still being handled."""

    code = "still-working"
    reason = "an earlier attempt is still being handled"
    remedy = "The sender tries again: there is nothing to do."
    step = "replay"
