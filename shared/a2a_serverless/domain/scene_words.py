"""The words of a picture request, English and Chinese, and what each of them stands for in a scene."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, Literal, TypeAlias

Kind: TypeAlias = Literal[
    "sailboat", "lighthouse", "island", "mountains", "whale", "birds", "sun", "moon", "clouds", "rainbow"
]
Colour: TypeAlias = Literal[
    "red",
    "maroon",
    "orange",
    "gold",
    "yellow",
    "green",
    "teal",
    "sky blue",
    "blue",
    "navy",
    "purple",
    "pink",
    "brown",
    "black",
    "grey",
    "white",
]
Time: TypeAlias = Literal["dawn", "day", "sunset", "night"]
Weather: TypeAlias = Literal["clear", "cloudy", "rain", "storm", "fog", "snow"]
Waves: TypeAlias = Literal["calm", "gentle", "rough"]
Part: TypeAlias = Literal["hull", "sails", "stripes", "sea", "sky"]
Role: TypeAlias = Literal[
    "kind",
    "other",
    "part",
    "colour",
    "time",
    "weather",
    "waves",
    "add",
    "remove",
    "it",
    "number",
    "colouring",
    "filler",
]

# Name, English words (without plurals), Chinese words.
_KINDS: Final[tuple[tuple[Kind, str, str], ...]] = (
    (
        "sailboat",
        "sailboat,sail boat,sailing boat,sailing ship,tall ship,boat,yacht,dinghy,ship,vessel",
        "帆船,小船,游艇,船只,船",
    ),
    ("lighthouse", "lighthouse,light house,beacon", "灯塔"),
    ("island", "island,isle,palm,palm tree", "岛屿,小岛,海岛,岛,棕榈树,椰子树,椰树"),
    ("mountains", "mountain,hill,cliff", "山脉,群山,远山,高山,山峰,雪山,山"),
    ("whale", "whale", "鲸鱼,鲸"),
    ("birds", "bird,seagull,sea gull,gull,seabird", "海鸥,海鸟,飞鸟,鸟儿,小鸟,鸟"),
    ("sun", "sun", "太阳,日头"),
    ("moon", "moon,full moon", "月亮,圆月,满月,明月"),
    ("clouds", "cloud", "云朵,白云,云彩,云"),
    ("rainbow", "rainbow", "彩虹"),
)
_OTHER_ENGLISH: Final = (
    "cargo ship,cruise ship,container ship,steamship,motorboat,motor boat,speedboat,rowboat,rowing boat,canoe,kayak,"
    "submarine,fishing boat,ferry,pirate ship,warship,houseboat,airship,spaceship,star ship,sunflower,sun flower"
)
_OTHER_CHINESE: Final = (
    "货船,轮船,邮轮,游轮,快艇,潜艇,潜水艇,渔船,皮划艇,飞船,军舰,战舰,汽船,龙舟,向日葵,火山,鸟巢,船长"
)
_PARTS: Final[tuple[tuple[Part, str, str], ...]] = (
    ("hull", "hull", "船身,船体,船壳"),
    ("sails", "sail,mainsail,jib,spinnaker", "船帆,风帆,帆布,帆"),
    ("stripes", "stripe,band", "条纹,横纹"),
    (
        "sea",
        "sea,ocean,water,lake,bay,harbour,harbor,waves,coast,seaside,beach",
        "大海,海洋,海面,海上,海水,海边,海,湖面,湖,水面",
    ),
    ("sky", "sky,background", "天空,背景,天"),
)
_COLOURS: Final[tuple[tuple[Colour, str, str], ...]] = (
    ("red", "red,scarlet,vermilion", "红色,大红,鲜红,红"),
    ("maroon", "maroon,dark red,burgundy,crimson", "深红色,暗红色,深红,暗红,枣红"),
    ("orange", "orange", "橙色,橘色,橘红色,橙,橘红"),
    ("gold", "gold,golden", "金色,金黄色,金黄"),
    ("yellow", "yellow", "黄色,黄"),
    ("green", "green", "绿色,绿"),
    ("teal", "teal,turquoise,cyan,aqua", "青色,青绿色,蓝绿色,湖绿"),
    ("sky blue", "light blue,sky blue,pale blue,baby blue", "浅蓝色,天蓝色,淡蓝色,浅蓝,天蓝,淡蓝"),
    ("blue", "blue", "蓝色,蓝"),
    ("navy", "navy,navy blue,dark blue,deep blue", "深蓝色,藏青色,海军蓝,深蓝"),
    ("purple", "purple,violet,lilac", "紫色,紫"),
    ("pink", "pink,magenta", "粉色,粉红色,粉红,粉"),
    ("brown", "brown", "棕色,褐色,咖啡色"),
    ("black", "black", "黑色,黑"),
    ("grey", "grey,gray,silver", "灰色,银色,灰"),
    ("white", "white,cream", "白色,米色,白"),
)
_TIMES: Final[tuple[tuple[Time, str, str], ...]] = (
    ("dawn", "dawn,sunrise,daybreak,early morning", "日出,黎明,清晨,破晓,拂晓"),
    ("day", "day,daytime,daylight,noon,midday,morning,afternoon", "白天,中午,正午,上午,下午,早晨,早上"),
    ("sunset", "sunset,dusk,evening,twilight,golden hour,sundown", "日落,黄昏,傍晚,夕阳,落日,晚霞"),
    (
        "night",
        "night,nighttime,midnight,starry,star,moonlight,moonlit,nocturnal",
        "夜晚,夜里,夜间,晚上,深夜,午夜,星空,星星,星夜,月光,月夜,夜",
    ),
)
_WEATHERS: Final[tuple[tuple[Weather, str, str], ...]] = (
    ("clear", "clear,sunny,cloudless", "晴朗,晴天,晴空,晴"),
    ("cloudy", "cloudy,overcast", "多云,阴天,阴沉"),
    ("rain", "rain,rainy,raining,shower,drizzle", "下雨,雨天,小雨,大雨,雨"),
    ("storm", "storm,stormy,thunderstorm,thunder,lightning,tempest,hurricane", "暴风雨,风暴,雷雨,闪电,雷电,台风"),
    ("fog", "fog,foggy,mist,misty,haze,hazy", "大雾,雾气,薄雾,雾"),
    ("snow", "snow,snowy,snowing,winter", "下雪,大雪,雪"),
)
_WAVES: Final[tuple[tuple[Waves, str, str], ...]] = (
    ("calm", "calm,still water,smooth,quiet,peaceful,flat", "平静,风平浪静,宁静"),
    ("rough", "rough,choppy,big waves,high waves,huge waves,wild", "汹涌,大浪,巨浪,波涛,浪大"),
)
_NUMBERS: Final[tuple[tuple[str, str, str], ...]] = (
    ("1", "one,single", "一艘,一只,一条,一座"),
    ("2", "two,pair of,couple of", "两艘,两只,两条,两座,二"),
    ("3", "three,few,several", "三艘,三只,三条,三座,几艘,几只,三"),
    ("5", "four,five,many,flock of,some", "四只,五只,许多,很多,一群,四艘,五艘"),
    ("+1", "another,one more,second,extra", "再来一艘,另一艘,再加一艘,又一艘,再画一艘"),
)
_VERBS: Final[tuple[tuple[Role, str, str], ...]] = (
    (
        "add",
        "add,include,put,place,insert,draw,paint in,with,also,too,show",
        "添加,加上,增加,加,画上,添上,放,还要,还有",
    ),
    (
        "remove",
        "remove,delete,erase,without,no,take away,take out,get rid of,drop,hide",
        "去掉,删除,删掉,移除,去除,不要,没有,拿掉,擦掉,取消",
    ),
    ("it", "it,this,that,picture,image,painting,drawing", "它,这个,图片,图像,这张图,画面,图"),
    (
        "colouring",
        "colour,color,recolour,recolor,different colour,different color,other colour,other color",
        "颜色,换色,换个颜色",
    ),
)
_CLAUSE_END: Final = frozenset(".;,!?。；，！？\n")


@dataclass(frozen=True, slots=True)
class Mention:
    """One recognised word: what it means, where it stands, and in which clause of the text."""

    role: Role
    value: str
    start: int
    end: int
    clause: int


def recognise(text: str) -> list[Mention]:
    """The words of ``text`` that a scene can make something of, in order. Of words inside words the longest counts."""
    flat = text.replace("-", " ")
    clauses = [0, *accumulate(character in _CLAUSE_END for character in flat)]
    return [
        Mention(*_meaning(match.group().lower()), match.start(), match.end(), clauses[match.start()])
        for match in _WORD.finditer(flat)
    ]


def unrecognised(text: str) -> str:
    """What is left of ``text`` without the recognised words."""
    return _WORD.sub(" ", text.replace("-", " "))


def _entries() -> Iterator[tuple[str, tuple[Role, str]]]:
    tables: tuple[tuple[Role, tuple[tuple[str, str, str], ...]], ...] = (
        ("kind", _KINDS),
        ("part", _PARTS),
        ("colour", _COLOURS),
        ("time", _TIMES),
        ("weather", _WEATHERS),
        ("waves", _WAVES),
        ("number", _NUMBERS),
        ("other", (("", _OTHER_ENGLISH, _OTHER_CHINESE),)),
    )
    for role, table in tables:
        for value, english, chinese in table:
            yield from ((word, (role, value)) for word in f"{english},{chinese}".split(","))
    for role, english, chinese in _VERBS:
        yield from ((word, (role, "")) for word in f"{english},{chinese}".split(","))


_MEANINGS: Final = dict(_entries())
_LONGEST_FIRST: Final = sorted(_MEANINGS, key=lambda word: (-len(word), word))
_WORD: Final = re.compile(
    rf"(?<![a-z])(?:{'|'.join(word for word in _LONGEST_FIRST if word.isascii())})(?:e?s)?(?![a-z])"
    rf"|{'|'.join(word for word in _LONGEST_FIRST if not word.isascii())}",
    re.IGNORECASE,
)


def _meaning(word: str) -> tuple[Role, str]:
    singular = next(form for form in (word, word.removesuffix("s"), word.removesuffix("es")) if form in _MEANINGS)
    return _MEANINGS[singular]
