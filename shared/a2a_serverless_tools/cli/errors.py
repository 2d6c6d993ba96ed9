"""Error messages for people, with what to do about the error. Any other error is a bug: it gives a traceback."""

from a2a_serverless.client import HttpError, Unreachable
from a2a_serverless.domain.errors import A2AError, ContentTypeNotSupported, TaskNotCancelable, TaskNotFound
from a2a_serverless.domain.origins import origin_of
from a2a_serverless.http_client.transport import is_local
from a2a_serverless.protocol.error_codes import code_of
from a2a_serverless_tools.cli.options import LOCAL_URL, CliContext, NoSuchAgent, UserError
from a2a_serverless_tools.cli.terminal import Explained, quote_words
from a2a_serverless_tools.operators.deployed import (
    AccessDenied,
    CommandFailed,
    CredentialsExpired,
    FunctionFailed,
    NoCopy,
    NoCredentials,
    NoRegion,
    NoSuchSchedule,
    StackNotFound,
)
from a2a_serverless_tools.project import ProjectError

UNAUTHORIZED = 401
LOCALLY = "or use --local for the stack on this machine"
DEPLOYED: dict[type[Exception], str] = {
    StackNotFound: f"name it with --stack, AWS_PROFILE and AWS_DEFAULT_REGION, {LOCALLY}",
    FunctionFailed: "`logs --errors` names what it raised, and where",
    NoRegion: f"set AWS_DEFAULT_REGION, such as AWS_DEFAULT_REGION=eu-central-1, {LOCALLY}",
    NoCredentials: f"set AWS_PROFILE, or sign in with `aws login` or `aws configure`, {LOCALLY}",
    AccessDenied: "allow your role what docs/roles.md says for operators, or choose another one with AWS_PROFILE",
    NoCopy: "docs/operate.md#restoring has the command that makes a copy of the stack's table",
    NoSuchSchedule: "`schedules list` shows the schedules of the stack",
    CredentialsExpired: "sign in again, and start the command again",
}
# Errors of API Gateway itself, and what helps.
GATEWAYS = {
    413: "a request has at most 10 MB: --file uploads big files",
    429: "try again in a moment: the stage or the account limits requests per second",
    502: "see the api function's log at that time",
    504: "try again: the answer took too long; see the api function's log at that time",
}


def explain(error: Exception, cli: CliContext) -> Explained | None:
    """Explains an error; None for one that a user can do nothing about."""
    match error:
        case Unreachable():
            text = f"There is no answer from {error.url}: {error.why}."
            return Explained("Unreachable", text, _when_unreachable(error.url, cli))
        case UserError():
            return Explained(type(error).__name__, str(error), error.remedy)
        case NoSuchAgent():
            return Explained("NoSuchAgent", str(error), f"{cli.program} cards list --url {quote_words(error.url)}")
        case HttpError():
            return _explain_http(error, cli)
        case A2AError():
            return Explained(code_of(error).name, _with_violations(error), _when_refused(error, cli))
    return _explain_of_stack(error) or _explain_of_aws(error)


def _explain_http(error: HttpError, cli: CliContext) -> Explained:
    if error.status == UNAUTHORIZED:
        return Explained("Unauthenticated", f"The agent requires credentials ({error}).", _sign_in(cli))
    return Explained("Refused", f"The request was refused: {error}.", GATEWAYS.get(error.status, ""))


def _explain_of_stack(error: Exception) -> Explained | None:
    from a2a_serverless_tools.stack.errors import StackError

    match error:
        case StackNotFound() | CommandFailed():
            return Explained(type(error).__name__, _sentence(error), DEPLOYED.get(type(error), ""))
        case ProjectError():
            return Explained("ProjectError", _sentence(error))
        case StackError():
            return Explained("StackError", str(error))
    return None


def _explain_of_aws(error: Exception) -> Explained | None:
    from a2a_serverless_tools.operators.deployed_stack import failure_of

    failure = failure_of(error)
    return _explain_of_stack(failure) if failure else None


def _sentence(error: Exception) -> str:
    return f"{str(error).rstrip('.')}."


def _with_violations(error: A2AError) -> str:
    """Returns the error's text, followed by the violations that it does not mention."""
    text = str(error)
    details = [f"  {one.field}: {one.description}" for one in error.violations if one.description not in text]
    return "\n".join([text, *details])


def _when_unreachable(url: str, cli: CliContext) -> str:
    if url.startswith(LOCAL_URL) or is_local(url):
        return f"`{cli.program} dev` or `up` starts agents on this machine; --url or A2A_URL names others"
    return "check the address, and whether this machine can reach it"


def _sign_in(cli: CliContext) -> str:
    if "A2A_AUTHORIZATION" in cli.environment:
        home = cli.environment.get("A2A_URL")
        where = origin_of(home) if home else "the deployment of --url"
        remedy = "if the agent is there, get a new token; else set A2A_URL to the agent's deployment"
        return f"A2A_AUTHORIZATION is sent to {where} only: {remedy}"
    return 'set A2A_AUTHORIZATION to the Authorization header, such as "Bearer eyJ..."'


def _when_refused(error: A2AError, cli: CliContext) -> str:
    if isinstance(error, TaskNotFound):
        return f"`{cli.program} tasks list` shows your tasks: each belongs to one agent and one caller"
    if isinstance(error, ContentTypeNotSupported):
        return "send a type that its card lists; an agent of yours lists more by input_modes=(...) in its code"
    if isinstance(error, TaskNotCancelable):
        return "`get` shows how it has ended"
    if any(one.field == "message.contextId" for one in error.violations):
        return "leave out --context: --task alone continues the task in its own conversation"
    return ""
