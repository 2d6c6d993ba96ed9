"""An agent that asks a question and makes a coat, piece by piece."""

from a2a_serverless import Skill, TaskContext, agent

SEW = Skill("sew", "Sew", "Sews a coat.", ("demo",), ("A coat, please.",))


# schedules=[Schedule("nightly", cron="30 1 * * ? *", zone="Europe/Berlin", text="...")] starts it each night.
@agent(id="tailor", name="Tailor", description="Makes coats.", skills=[SEW], whole_last_chunk=True)
async def tailor(task: TaskContext) -> None:
    colour = await task.ask("Which colour?")  # suspends the task until the client answers; nothing runs meanwhile
    for piece in ("sleeves", "back", "collar"):
        sewn = await task.step(piece, sew, piece, colour.text())  # a finished step is never run again
        await task.emit("coat.txt", sewn, append=True, last=piece == "collar")  # sent to streams and webhooks


async def sew(piece: str, colour: str) -> str:
    return f"{colour} {piece}\n"
