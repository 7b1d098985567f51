"""What /why says, in ten languages."""
# ruff: noqa: RUF001 - ten languages have their own signs

from typing import Final

from botservice.commands.command import Texts

MENU: Final[Texts] = {
    "en": "What my last answer was made of",
    "de": "Woraus meine letzte Antwort entstand",
    "es": "De qué salió mi última respuesta",
    "fr": "D’où vient ma dernière réponse",
    "it": "Da cosa è nata la mia ultima risposta",
    "pt": "De onde veio minha última resposta",
    "ru": "Из чего сложился мой последний ответ",
    "ko": "마지막 답변의 근거",
    "ja": "直前の回答のもとになったもの",
    "zh": "上一个回答的依据",
}
NOTHING: Final[Texts] = {
    "en": "I have not answered anything here yet, or do not keep any more how I came to it.",
    "de": "Ich habe hier noch nichts beantwortet, oder ich weiß nicht mehr, wie ich darauf kam.",
    "es": "Aquí todavía no he respondido nada, o ya no guardo cómo llegué a ello.",
    "fr": "Je n’ai encore rien répondu ici, ou je ne garde plus comment j’y suis arrivé.",
    "it": "Qui non ho ancora risposto a nulla, o non conservo più come ci sono arrivato.",
    "pt": "Ainda não respondi a nada aqui, ou já não guardo como cheguei lá.",
    "ru": "Я здесь ещё ни на что не отвечал или уже не храню, как пришёл к ответу.",
    "ko": "아직 답한 것이 없거나, 어떻게 답했는지 더 이상 보관하지 않습니다.",
    "ja": "ここではまだ何も答えていないか、答えの経緯をもう保管していません。",
    "zh": "我在这里还没有回答过，或者已不再保留回答的过程。",
}
ABOUT: Final[Texts] = {
    "en": "My last answer (to “{question}”) was made of:",
    "de": "Meine letzte Antwort (auf „{question}“) entstand aus:",
    "es": "Mi última respuesta (a «{question}») salió de:",
    "fr": "Ma dernière réponse (à « {question} ») vient de :",
    "it": "La mia ultima risposta (a «{question}») è nata da:",
    "pt": "Minha última resposta (a “{question}”) veio de:",
    "ru": "Мой последний ответ (на «{question}») сложился из:",
    "ko": "마지막 답변(“{question}”에 대한)의 근거:",
    "ja": "直前の回答（「{question}」への）のもと：",
    "zh": "我对“{question}”的回答依据：",
}
WINDOW: Final[Texts] = {
    "en": "the newest messages of this chat: {count}",
    "de": "den neuesten Nachrichten dieses Chats: {count}",
    "es": "los mensajes más recientes de este chat: {count}",
    "fr": "les derniers messages de cette discussion : {count}",
    "it": "i messaggi più recenti di questa chat: {count}",
    "pt": "as mensagens mais recentes desta conversa: {count}",
    "ru": "последних сообщений этого чата: {count}",
    "ko": "이 대화의 최근 메시지: {count}",
    "ja": "このチャットの最新メッセージ：{count}",
    "zh": "本聊天的最新消息：{count}",
}
PERSONA: Final[Texts] = {
    "en": "how I am to be in this chat (/persona):",
    "de": "wie ich in diesem Chat sein soll (/persona):",
    "es": "cómo debo ser en este chat (/persona):",
    "fr": "comment je dois être dans cette discussion (/persona) :",
    "it": "come devo essere in questa chat (/persona):",
    "pt": "como devo ser nesta conversa (/persona):",
    "ru": "каким мне быть в этом чате (/persona):",
    "ko": "이 대화에서의 제 성격 (/persona):",
    "ja": "このチャットでの私の人柄（/persona）：",
    "zh": "我在本聊天中的角色（/persona）：",
}
FOUND: Final[Texts] = {
    "en": "remembered from earlier:",
    "de": "woran ich mich von früher erinnerte:",
    "es": "lo que recordé de antes:",
    "fr": "ce que je me rappelais d’avant :",
    "it": "ciò che ricordavo da prima:",
    "pt": "o que lembrei de antes:",
    "ru": "того, что я помнил с прошлых времён:",
    "ko": "이전 대화에서 기억한 것:",
    "ja": "以前の会話から思い出したこと：",
    "zh": "从以前的对话中想起的：",
}
FACTS: Final[Texts] = {
    "en": "what I know about whoever asked:",
    "de": "was ich über die Person weiß, die fragte:",
    "es": "lo que sé de quien preguntó:",
    "fr": "ce que je sais de la personne qui a demandé :",
    "it": "ciò che so di chi ha chiesto:",
    "pt": "o que sei de quem perguntou:",
    "ru": "того, что я знаю о спросившем:",
    "ko": "질문한 사람에 대해 아는 것:",
    "ja": "質問した人について知っていること：",
    "zh": "我对提问者的了解：",
}
HIDDEN: Final[Texts] = {
    "en": "{count}; only they may see them",
    "de": "{count}; nur sie selbst darf es sehen",
    "es": "{count}; solo esa persona puede verlo",
    "fr": "{count} ; elle seule peut le voir",
    "it": "{count}; solo quella persona può vederlo",
    "pt": "{count}; só essa pessoa pode ver",
    "ru": "{count}; это видно только ему самому",
    "ko": "{count}; 본인만 볼 수 있습니다",
    "ja": "{count}件。本人だけが見られます",
    "zh": "{count} 条；只有本人可以查看",
}
TOOLS: Final[Texts] = {
    "en": "tools:",
    "de": "Werkzeugen:",
    "es": "herramientas:",
    "fr": "les outils :",
    "it": "strumenti:",
    "pt": "ferramentas:",
    "ru": "инструментов:",
    "ko": "도구:",
    "ja": "ツール：",
    "zh": "工具：",
}
WORKED: Final[Texts] = {
    "en": "worked",
    "de": "ging",
    "es": "funcionó",
    "fr": "réussi",
    "it": "riuscito",
    "pt": "funcionou",
    "ru": "сработал",
    "ko": "성공",
    "ja": "成功",
    "zh": "成功",
}
FAILED: Final[Texts] = {
    "en": "failed ({error})",
    "de": "ging nicht ({error})",
    "es": "falló ({error})",
    "fr": "échoué ({error})",
    "it": "fallito ({error})",
    "pt": "falhou ({error})",
    "ru": "не сработал ({error})",
    "ko": "실패 ({error})",
    "ja": "失敗（{error}）",
    "zh": "失败（{error}）",
}
MODEL: Final[Texts] = {
    "en": "the model {model}: {calls} calls, {given} tokens in, {said} out",
    "de": "dem Modell {model}: {calls} Aufrufe, {given} Token hinein, {said} heraus",
    "es": "el modelo {model}: {calls} llamadas, {given} tokens de entrada, {said} de salida",
    "fr": "le modèle {model} : {calls} appels, {given} jetons en entrée, {said} en sortie",
    "it": "il modello {model}: {calls} chiamate, {given} token in entrata, {said} in uscita",
    "pt": "o modelo {model}: {calls} chamadas, {given} tokens de entrada, {said} de saída",
    "ru": "модели {model}: вызовов {calls}, токенов {given} на входе, {said} на выходе",
    "ko": "모델 {model}: 호출 {calls}회, 입력 {given} 토큰, 출력 {said} 토큰",
    "ja": "モデル {model}：呼び出し {calls} 回、入力 {given} トークン、出力 {said} トークン",
    "zh": "模型 {model}：调用 {calls} 次，输入 {given} 个词元，输出 {said} 个词元",
}
