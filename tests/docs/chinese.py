"""Generated tables in Chinese: each text of the English table has its translation here.

A text that has none is an error, so a text that changes in English is translated again.
"""

from __future__ import annotations

import re
from typing import Final

TEXTS: Final = {
    # The errors of the API.
    "what it means": "含义",
    "what to do": "解决办法",
    "The body is not JSON.": "请求体不是 JSON。",
    "Send valid JSON in UTF-8.": "发送有效的 JSON，用 UTF-8 编码。",
    "The envelope is not a JSON-RPC 2.0 request.": "请求的外层不是 JSON-RPC 2.0 请求。",
    'Send one object with `"jsonrpc": "2.0"`, `method` and `params`; no batch.': (
        '发送一个对象，带有 `"jsonrpc": "2.0"`、`method` 和 `params`；不要批量发送。'
    ),
    "Another event from outside was accepted at this address before.": "这个地址此前已经接受了另一个外部事件。",
    "Send one event to an address; the agent makes an address for each ([waiting](waiting.md)).": (
        "一个地址只发送一个事件；智能体为每个事件创建一个地址（[等待](waiting.md)）。"
    ),
    "The body is compressed.": "请求体是压缩的。",
    "Send the body as it is, without `Content-Encoding`.": "直接发送请求体，不用 `Content-Encoding`。",
    "The body is over the limit of bytes, or of JSON values.": "请求体的字节数或 JSON 值的个数超过上限。",
    "Send a smaller body. [Upload](content.md) big files, and data of many values as a file.": (
        "发送小一些的请求体。大文件请[上传](../content.md)，值很多的数据也作为文件上传。"
    ),
    "The method or route does not exist.": "方法或路径不存在。",
    "Compare the method or path with [api.md](api.md); `/agents` lists the agents.": (
        "把方法或路径与 [API](../api.md) 对照；`/agents` 列出智能体。"
    ),
    "The path exists, but not for this HTTP method.": "路径存在，但不支持这个 HTTP 方法。",
    "Use a method that the header `Allow` lists.": "使用请求头 `Allow` 列出的方法。",
    "A parameter is missing or wrong.": "缺少参数，或者参数有错。",
    "The message and `fieldViolations` name each wrong field. Correct them.": (
        "错误消息和 `fieldViolations` 指出每个有错的字段。改正它们。"
    ),
    "Our fault; the text does not say why.": "我们的错；错误消息不说明原因。",
    "Send the same request again, with the same `messageId`. If it stays, ask the operator.": (
        "用同一个 `messageId` 再次发送同一个请求。如果仍然出错，询问运维人员。"
    ),
    "The task does not exist or belongs to another caller; both get the same error.": (
        "任务不存在，或者属于另一个调用者；两种情况的错误相同。"
    ),
    "Check the id, and sign in as the caller who started the task. Old tasks are deleted.": (
        "检查 id，并以创建任务的调用者的身份登录。旧的任务会被删除。"
    ),
    "The task has already ended.": "任务已经结束。",
    "Nothing: the task has ended.": "什么也不用做：任务已经结束。",
    "The agent's card does not offer push notifications.": "智能体的名片没有提供推送通知。",
    "Poll or stream instead. Agents of this project all support webhooks.": (
        "改用轮询或流。本项目的智能体都支持 webhook。"
    ),
    "The operation does not fit the task or the agent.": "操作不适合这个任务或智能体。",
    "The message says what. If the task has ended, send no `taskId`: a new task begins.": (
        "错误消息说明哪里不适合。如果任务已经结束，不要发送 `taskId`：会开始一个新任务。"
    ),
    "A media type that the agent does not accept.": "智能体不接受的媒体类型。",
    "Send `Content-Type: application/json`, and parts of the media types on the card.": (
        "发送 `Content-Type: application/json`，part 的媒体类型要在名片上。"
    ),
    "The agent violated the protocol.": "智能体违反了协议。",
    "Another agent answered against the protocol. Tell its owner.": "另一个智能体的回答违反协议。请告诉它的所有者。",
    "The agent has no extended card.": "智能体没有扩展名片。",
    "Use the public card.": "使用公开的名片。",
    "The client did not declare an extension that the agent requires.": "客户端没有声明智能体必需的扩展。",
    "Name the extension that the card requires in the header `A2A-Extensions`.": (
        "在请求头 `A2A-Extensions` 里写上名片要求的扩展。"
    ),
    "The A2A version is not supported.": "不支持这个 A2A 版本。",
    "Send the header `A2A-Version: 1.0` (or `0.3` with methods of 0.3).": (
        "发送请求头 `A2A-Version: 1.0`（用 0.3 的方法时是 `0.3`）。"
    ),
    "Too much load; nothing was changed.": "负载过高；没有改变任何内容。",
    "Send the same request again after the seconds of `Retry-After`.": (
        "过了 `Retry-After` 的秒数之后，再次发送同一个请求。"
    ),
    "The caller is not authenticated.": "调用者没有有效的凭证。",
    "Send `Authorization: Bearer` with an API key or a valid token ([access.md](access.md)).": (
        "发送 `Authorization: Bearer`，带上 API 密钥或有效的令牌（[谁可以调用](access.md)）。"
    ),
    "The request with an event has no right signature; the text tells why.": (
        "带事件的请求没有正确的签名；错误消息说明原因。"
    ),
    "Sign the exact body with the secret that the agent uses ([waiting](waiting.md)).": (
        "用智能体所用的机密，对请求体的原样字节签名（[等待](waiting.md)）。"
    ),
    "The caller is authenticated but lacks a scope for this agent.": "调用者有凭证，但缺少这个智能体的权限范围。",
    "Get a key or a token with the scope that the message names.": "取得一个密钥或令牌，带有错误消息写明的权限范围。",
    "The caller's quota is used up; nothing was changed.": "调用者的限额已用完；没有改变任何内容。",
    # The metrics.
    "metric": "指标",
    "unit": "单位",
    "by": "维度",
    "Tasks that entered a state.": "进入某个状态的任务。",
    "Duration of a step of an agent.": "智能体的一个步骤所用的时间。",
    "Time that a task or event spent queued.": "任务或事件在队列里的时间。",
    "1 for a POST to a webhook that was accepted, 0 for one that was not.": (
        "发给 webhook 的 POST：接受了是 1，没有接受是 0。"
    ),
    "How many POSTs an event took until it was accepted or given up.": (
        "一个事件在被接受或放弃之前，用了多少次 POST。"
    ),
    "Webhooks that were given up after their last attempt.": "最后一次尝试之后放弃的 webhook。",
    "Events that went to a webhook whose owner did not answer the challenge.": (
        "发给所有者没有回答质询的 webhook 的事件。"
    ),
    "How overdue the oldest task is that no worker runs; from two minutes on.": (
        "没有 worker 运行的任务里，最早的一个已经逾期多久；从两分钟起。"
    ),
    "How overdue the oldest delivery is, without delays by receivers; from two minutes on.": (
        "最早的一次投递已经逾期多久，不算接收方造成的延迟；从两分钟起。"
    ),
    "Webhook hosts with an open circuit breaker in an instance, recorded at each change.": (
        "在一个实例里熔断器打开的 webhook 主机，每次变化时记录。"
    ),
    "Runs and deliveries that died, or were too slow for their lease.": "中断的，或者慢得超过租约的运行和投递。",
    "Runs that came to an act with something else than an earlier run, or that ended without an act of it.": (
        "到达某个操作时内容与以前的运行不同，或者结束时缺少以前的操作的运行。"
    ),
    "Ticks of schedules that started no task.": "没有启动任务的定时触发。",
    "Cold starts of functions.": "函数的冷启动。",
    "Runs of the sweeper.": "sweeper 的运行。",
    "Due items that could not be read. They are checked again within an hour.": (
        "读不出的到期条目。一小时之内会再次检查。"
    ),
    "Age of the signing key, in percent of the age at which it is replaced.": (
        "签名密钥的使用时间，按更换时的使用时间的百分比计算。"
    ),
    "Requests that failed by our fault, also those that JSON-RPC answers with status 200.": (
        "因我们的错而失败的请求，包括 JSON-RPC 用状态码 200 回答的。"
    ),
    # Fairness between owners.
    "queues": "队列",
    "owner": "所有者",
    "tasks": "任务",
    "work begins after": "多久之后开始工作",
    "first webhook after": "多久之后第一个 webhook",
    "in line": "排队",
    "fair": "公平",
}
_CELL: Final = re.compile(r"(?<=\| )[^|]+?(?= \|)")
_CODE: Final = re.compile(r"`[^`]*`")
_SECONDS: Final = re.compile(r"(\d+) s, at most (\d+) s")
_WORDS: Final = re.compile(r"[a-z]+ [a-z]+")


def in_chinese(table: str) -> str:
    """A table in Chinese. Names, numbers and code stay as they are."""
    return _CELL.sub(lambda cell: _translated(cell[0]), table)


def _translated(text: str) -> str:
    text = _SECONDS.sub(r"\1 秒，最多 \2 秒", text)
    if text not in TEXTS and _WORDS.search(_CODE.sub("", text)):
        message = f"tests/docs/chinese.py has no translation of: {text}"
        raise ValueError(message)
    return TEXTS.get(text, text)
