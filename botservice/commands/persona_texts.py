"""What /persona says, in ten languages."""
# ruff: noqa: RUF001 - ten languages have their own signs

from typing import Final

from botservice.commands.command import Texts

MENU: Final[Texts] = {
    "en": "How I am to be in this chat",
    "de": "Wie ich in diesem Chat sein soll",
    "es": "Cómo debo ser en este chat",
    "fr": "Comment je dois être dans cette discussion",
    "it": "Come devo essere in questa chat",
    "pt": "Como devo ser nesta conversa",
    "ru": "Каким мне быть в этом чате",
    "ko": "이 대화에서의 제 성격",
    "ja": "このチャットでの私の人柄",
    "zh": "我在本聊天中的角色",
}
NONE: Final[Texts] = {
    "en": "I have no persona here. Give me one: /persona You are a patient teacher who answers with questions.",
    "de": "Ich habe hier keine Rolle. Gib mir eine: /persona Du bist ein geduldiger Lehrer, der mit Fragen antwortet.",
    "es": "Aquí no tengo ningún papel. Dame uno: /persona Eres un maestro paciente que responde con preguntas.",
    "fr": "Je n’ai pas de rôle ici. Donnez-m’en un : /persona Tu es un professeur patient, qui répond par questions.",
    "it": "Qui non ho un ruolo. Dammene uno: /persona Sei un insegnante paziente che risponde con domande.",
    "pt": "Não tenho um papel aqui. Dê-me um: /persona Você é um professor paciente que responde com perguntas.",
    "ru": "Здесь у меня нет роли. Дайте мне её: /persona Ты терпеливый учитель, который отвечает вопросами.",
    "ko": "여기서는 정해진 성격이 없습니다. 이렇게 정해 주세요: /persona 당신은 참을성 있는 선생님입니다.",
    "ja": "ここでは役割がありません。こう決められます：/persona あなたは質問で答える忍耐強い先生です。",
    "zh": "我在这里没有角色。可以这样设定：/persona 你是一位用提问来回答的耐心老师。",
}
NOW: Final[Texts] = {
    "en": "In this chat I am:\n```\n{persona}\n```\nTo end that: /persona off",
    "de": "In diesem Chat bin ich:\n```\n{persona}\n```\nDamit hört es auf: /persona off",
    "es": "En este chat soy:\n```\n{persona}\n```\nPara terminarlo: /persona off",
    "fr": "Dans cette discussion, je suis :\n```\n{persona}\n```\nPour y mettre fin : /persona off",
    "it": "In questa chat sono:\n```\n{persona}\n```\nPer smettere: /persona off",
    "pt": "Nesta conversa eu sou:\n```\n{persona}\n```\nPara terminar: /persona off",
    "ru": "В этом чате я:\n```\n{persona}\n```\nЗакончить: /persona off",
    "ko": "이 대화에서 저는:\n```\n{persona}\n```\n끝내려면: /persona off",
    "ja": "このチャットでの私：\n```\n{persona}\n```\n終わるには：/persona off",
    "zh": "我在本聊天中是：\n```\n{persona}\n```\n结束：/persona off",
}
DONE: Final[Texts] = {
    "en": "Good, from now on I am like that in this chat. To end it: /persona off",
    "de": "Gut, ab jetzt bin ich in diesem Chat so. Damit hört es auf: /persona off",
    "es": "Bien, desde ahora soy así en este chat. Para terminarlo: /persona off",
    "fr": "Bien, désormais je suis ainsi dans cette discussion. Pour y mettre fin : /persona off",
    "it": "Bene, da ora in questa chat sono così. Per smettere: /persona off",
    "pt": "Certo, a partir de agora sou assim nesta conversa. Para terminar: /persona off",
    "ru": "Хорошо, теперь в этом чате я такой. Закончить: /persona off",
    "ko": "좋습니다. 이제 이 대화에서는 그렇게 하겠습니다. 끝내려면: /persona off",
    "ja": "わかりました。これからこのチャットではそうします。終わるには：/persona off",
    "zh": "好的，从现在起我在本聊天中就是这样。结束：/persona off",
}
CLEARED: Final[Texts] = {
    "en": "Good, I am myself again in this chat.",
    "de": "Gut, in diesem Chat bin ich wieder ich selbst.",
    "es": "Bien, en este chat vuelvo a ser yo.",
    "fr": "Bien, dans cette discussion je redeviens moi-même.",
    "it": "Bene, in questa chat torno a essere me stesso.",
    "pt": "Certo, nesta conversa volto a ser eu mesmo.",
    "ru": "Хорошо, в этом чате я снова такой, как всегда.",
    "ko": "좋습니다. 이 대화에서 다시 원래대로 하겠습니다.",
    "ja": "わかりました。このチャットでは元に戻ります。",
    "zh": "好的，我在本聊天中恢复原样。",
}
TOO_LONG: Final[Texts] = {
    "en": "That is too long: at most {limit} characters.",
    "de": "Das ist zu lang: höchstens {limit} Zeichen.",
    "es": "Es demasiado largo: como máximo {limit} caracteres.",
    "fr": "C’est trop long : {limit} caractères au plus.",
    "it": "È troppo lungo: al massimo {limit} caratteri.",
    "pt": "É longo demais: no máximo {limit} caracteres.",
    "ru": "Слишком длинно: не больше {limit} знаков.",
    "ko": "너무 깁니다. 최대 {limit}자입니다.",
    "ja": "長すぎます。最大{limit}文字です。",
    "zh": "太长了：最多 {limit} 个字符。",
}
FOR_OWNERS: Final[Texts] = {
    "en": "In a group, only an owner may decide how I am.",
    "de": "In einer Gruppe entscheidet nur, wem ich gehöre, wie ich bin.",
    "es": "En un grupo, solo un propietario puede decidir cómo soy.",
    "fr": "Dans un groupe, seul un propriétaire peut décider comment je suis.",
    "it": "In un gruppo, solo un proprietario può decidere come sono.",
    "pt": "Em um grupo, só um dono pode decidir como eu sou.",
    "ru": "В группе только владелец решает, каким мне быть.",
    "ko": "그룹에서는 소유자만 정할 수 있습니다.",
    "ja": "グループでは、所有者だけが決められます。",
    "zh": "在群组中，只有所有者可以决定。",
}
