"""Words that say little about what a text is about: they never name a section and never tie two sentences together."""

from __future__ import annotations

from typing import Final


def listed(words: str) -> list[str]:
    """The words in a text of words and white space."""
    return words.split()


ENGLISH: Final = frozenset(
    listed("""
    a about above across actually after again against ago all almost along already also although always am
    among an and another any anybody anyone anything anyway anywhere apart are aren't around as at away back be
    became because become becomes been before behind being below beside besides between beyond both but by came
    can can't cannot come comes coming could couldn't did didn't do does doesn't doing done don't down during
    each either else enough especially etc even ever every everybody everyone everything everywhere except far
    few finally first for former forth from further gave get gets getting give given gives giving go goes going
    gone got had hadn't hardly has hasn't have haven't having he he's hence her here here's hers herself him
    himself his how however i i'd i'll i'm i've if in indeed instead into is isn't it it's its itself just keep
    keeps kept knew know known knows last later latter least less let let's like likely long made main mainly
    make makes making many may maybe me mean means meant meanwhile might mine more moreover most mostly much
    must my myself namely near nearly need needs neither never nevertheless new next no nobody none nor not
    nothing now nowhere of off often oh ok okay old on once one one's ones only onto or other others otherwise
    our ours ourselves out over own per perhaps put puts quite rather really said same saw say saying says
    second see seem seemed seems seen several shall she she's should shouldn't simply since so some somebody
    somehow someone something sometimes somewhere soon still such sure take taken takes taking tell tells than
    that that's the their theirs them themselves then there there's thereby therefore these they they're
    they've thing things think third this those though three through throughout thus to together told too took
    toward towards tried tries try two under unless until up upon us use used useful uses using usually various
    very via want wanted wants was wasn't way ways we we'd we'll we're we've well went were weren't what what's
    whatever when whenever where whereas wherever whether which while who who's whoever whole whom whose why
    will with within without won't would wouldn't yes yet you you'd you'll you're you've your yours yourself
    yourselves able allow allows allowed best better big call called calls certain clear common contain
    contains create created creates creating different easily easy end ended ends example examples find finds
    follow followed following follows found good great help helps high hundred include included includes
    including kind large left little look looked looks lot low needed number offer offers part particular
    people place possible provide provided provides quickly ready right run runs running set sets show showed
    shown shows simple single small start started starts stay stays stand stands stood sort thousand time times
    today turn turned turns type work worked works year years half four five six seven eight nine ten begin
    began begins bring brought brings feel felt grow grew happen happens happened hold held holds hour hours
    day days minute minutes lead led leads leave leaves live lived lives lose lost move moved moves open opened
    opens pass passed play played reach reached reaches remain remains return returned returns send sends sent
    serve served serves stop stopped stops thank thanks understand wait wish hello hi hey sorry please note
    notes ask asked asks answer answered answers built lit wore worn broke broken wrote written rose risen ran
    spoke spoken stole fought sold grown drew drawn drove driven ate eaten fell fallen flew flown forgot hung
    heard hid hit hurt laid lay lent met paid read rode shook shot sang sank slept spent spread struck swam
    taught threw understood won wound bought caught chose chosen cost cut dealt dug drank metre metres meter
    meters mile miles kilometre kilometres km tonne tonnes ton tons foot feet inch inches degree degrees
    percent seconds week weeks month months century centuries decade decades twenty thirty forty fifty sixty
    hundreds thousands million millions billion january february march april june july august september october
    november december monday tuesday wednesday thursday friday saturday sunday morning evening early late top
    bottom side front middle full free true wrong hard fact sense case reason result idea point bit rest man
    woman men women person mr mrs ms dr prof st i.e e.g vs
    """)
)

# Characters that are words of their own nearly everywhere: no phrase goes across them.
HAN_CUTS: Final = frozenset("的了是在和与或等这那其被把将也就都而但很吗呢吧啊呀么你我他她它们")

# Characters that rarely begin or end the name of a subject, though they stand inside many (智能体, 不可变性).
HAN_EDGES: Final = frozenset(
    "能会可要应不无有没从到由对为以于向往当每各某该此个种些一二三四五六七八九十百千万两几上下里中内外前后时年月日着过得地来去说做"
    "用好多少大小新旧只未均令请即仅至自且却便才已曾正刚并则若又再还让使给跟比更最越虽因所之及"
)

# Common words that are no subject: cut out before phrases are counted, longer ones first.
HAN_WORDS: Final = tuple(
    sorted(
        listed("""
    可以 以及 例如 通常 因此 所以 如果 由于 通过 根据 关于 对于 有关 进行 使用 包括 包含 具有 需要 能够 可能
    应该 必须 应当 不会 不能 不应 不是 没有 任何 所有 每个 每条 每次 一个 一种 一些 一条 一次 一旦 一般 某个
    某些 多个 许多 各种 不同 相同 相关 其他 其它 以下 以上 之前 之后 之间 同时 然后 随后 首先 其次 最后 此外
    另外 然而 不过 虽然 尽管 即使 只要 只有 除非 无论 无法 何时 如何 什么 为什么 怎么 怎样 哪些 哪个 自己 本身
    非常 十分 特别 尤其 已经 正在 曾经 仍然 始终 总是 经常 有时 现在 今天 目前 当前 当时 时候 以来 直到 从而
    而且 并且 或者 还是 就是 也是 都是 这是 那是 作为 成为 变成 得到 提供 支持 允许 表示 说明 确保 帮助 使得
    导致 引起 产生 带来 属于 来自 位于 存在 出现 发生 开始 结束 继续 保持 采用 利用 用于 适用 适合 有助于
    意味着 称为 叫做 认为 觉得 知道 看到 发现 要求 希望 第一 第二 第三 很多 大量 主要 重要 简单 复杂 基本 整个
    部分 方面 情况 问题 方式 方法 这些 那些 这个 那个 这样 那样 这种 那种 我们 他们 它们 她们 你们 人们 大家
    只能 只是 更多 更加 尚未 即可 再次 立即 直接 明确 建议 每一 有些 有的 不仅 不但 甚至 比如 为了 除了 随着
    按照 经过 其中 其实 当然 显然 似乎 几乎 大约 左右 至少 最多 至今 从此 于是 何况 况且 否则 不再 不必 不得
    不用 还有 只好
    """),
        key=lambda word: (-len(word), word),
    )
)
