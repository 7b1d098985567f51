"""What /memory says, in ten languages."""
# ruff: noqa: RUF001 - ten languages have their own signs

from typing import Final

from botservice.commands.command import Texts

MENU: Final[Texts] = {
    "en": "What I know of you: see, correct, delete",
    "de": "Was ich über dich weiß: sehen, berichtigen, löschen",
    "es": "Lo que sé de ti: ver, corregir, borrar",
    "fr": "Ce que je sais de vous : voir, corriger, effacer",
    "it": "Cosa so di te: vedere, correggere, cancellare",
    "pt": "O que sei sobre você: ver, corrigir, apagar",
    "ru": "Что я о вас знаю: посмотреть, исправить, удалить",
    "ko": "내가 당신에 대해 아는 것: 보기, 고치기, 지우기",
    "ja": "あなたについて知っていること：見る・直す・消す",
    "zh": "我对你的了解：查看、更正、删除",
}
LIST: Final[Texts] = {
    "en": "What I know of you:",
    "de": "Das weiß ich über dich:",
    "es": "Esto es lo que sé de ti:",
    "fr": "Voici ce que je sais de vous :",
    "it": "Ecco cosa so di te:",
    "pt": "Isto é o que sei sobre você:",
    "ru": "Вот что я о вас знаю:",
    "ko": "당신에 대해 아는 것:",
    "ja": "あなたについて知っていること：",
    "zh": "我对你的了解：",
}
NOTHING: Final[Texts] = {
    "en": "I know nothing of you yet. Tell me something that I should remember.",
    "de": "Ich weiß noch nichts über dich. Sag mir etwas, das ich mir merken soll.",
    "es": "Aún no sé nada de ti. Dime algo que deba recordar.",
    "fr": "Je ne sais encore rien de vous. Dites-moi ce que je dois retenir.",
    "it": "Non so ancora nulla di te. Dimmi qualcosa che devo ricordare.",
    "pt": "Ainda não sei nada sobre você. Diga-me algo que eu deva lembrar.",
    "ru": "Я пока ничего о вас не знаю. Расскажите, что мне запомнить.",
    "ko": "아직 당신에 대해 아는 것이 없습니다. 기억할 것을 말해 주세요.",
    "ja": "まだ何も知りません。覚えておくことを教えてください。",
    "zh": "我还不了解你。告诉我一些该记住的事吧。",
}
NOTHING_HERE: Final[Texts] = {
    "en": "There is nothing of you that I would tell in this chat.",
    "de": "Es gibt nichts über dich, das ich in diesem Chat sagen würde.",
    "es": "No hay nada tuyo que diría en este chat.",
    "fr": "Il n’y a rien sur vous que je dirais dans cette discussion.",
    "it": "Non c’è nulla di te che direi in questa chat.",
    "pt": "Não há nada seu que eu diria nesta conversa.",
    "ru": "Нет ничего о вас, что я сказал бы в этом чате.",
    "ko": "이 대화에서 말할 만한 당신의 정보는 없습니다.",
    "ja": "このチャットで話すことはありません。",
    "zh": "没有什么关于你的事是我会在这个聊天里说的。",
}
HOW: Final[Texts] = {
    "en": "/memory correct {number} … puts your words in its place, /memory delete {number} deletes it, /memory share "
    "{number} lets groups know it too, /memory unshare {number} takes that back.",
    "de": "/memory correct {number} … setzt deine Worte an seine Stelle, /memory delete {number} löscht es, /memory "
    "share "
    "{number} lässt es auch Gruppen wissen, /memory unshare {number} nimmt das zurück.",
    "es": "/memory correct {number} … lo cambia por tus palabras, /memory delete {number} lo borra, /memory share "
    "{number} "
    "lo deja saber también a los grupos, /memory unshare {number} lo revoca.",
    "fr": "/memory correct {number} … le remplace par vos mots, /memory delete {number} l’efface, /memory share "
    "{number} "
    "le laisse savoir aux groupes aussi, /memory unshare {number} l’annule.",
    "it": "/memory correct {number} … lo sostituisce con le tue parole, /memory delete {number} lo cancella, "
    "/memory share "
    "{number} lo fa sapere anche ai gruppi, /memory unshare {number} lo revoca.",
    "pt": "/memory correct {number} … troca pelas suas palavras, /memory delete {number} apaga, /memory share {number} "
    "deixa os grupos saberem também, /memory unshare {number} desfaz isso.",
    "ru": "/memory correct {number} … заменит это вашими словами, /memory delete {number} удалит, /memory share "
    "{number} "
    "откроет и группам, /memory unshare {number} закроет снова.",
    "ko": "/memory correct {number} … 는 당신의 말로 바꾸고, /memory delete {number} 는 지우고, /memory share "
    "{number} 는 "
    "그룹에도 알리며, /memory unshare {number} 는 되돌립니다.",
    "ja": "/memory correct {number} … で書き換え、/memory delete {number} で削除、/memory share {number} "
    "でグループにも共有、"
    "/memory unshare {number} で取り消し。",
    "zh": "/memory correct {number} … 用你的话替换，/memory delete {number} 删除，/memory share {number} 让群组也知道，"
    "/memory unshare {number} 撤回。",
}
ELSEWHERE: Final[Texts] = {
    "en": "Others listen here. Write /memory to me in a private chat to see everything.",
    "de": "Hier hören andere mit. Schreib mir /memory in einem privaten Chat, um alles zu sehen.",
    "es": "Aquí escuchan otros. Escríbeme /memory en un chat privado para verlo todo.",
    "fr": "D’autres écoutent ici. Écrivez-moi /memory en privé pour tout voir.",
    "it": "Qui ascoltano altri. Scrivimi /memory in privato per vedere tutto.",
    "pt": "Outros ouvem aqui. Escreva /memory para mim em particular para ver tudo.",
    "ru": "Здесь слушают другие. Напишите мне /memory в личном чате, чтобы увидеть всё.",
    "ko": "여기는 다른 사람도 봅니다. 전부 보려면 개인 대화에서 /memory 라고 보내 주세요.",
    "ja": "ここは他の人も見ています。すべて見るには個人チャットで /memory と送ってください。",
    "zh": "这里有别人。想看全部，请在私聊里给我发 /memory。",
}
SOURCE: Final[Texts] = {
    "en": "you said “{said}” on {date}, {where}",
    "de": "du sagtest „{said}“ am {date}, {where}",
    "es": "dijiste «{said}» el {date}, {where}",
    "fr": "vous avez dit « {said} » le {date}, {where}",
    "it": "hai detto «{said}» il {date}, {where}",
    "pt": "você disse “{said}” em {date}, {where}",
    "ru": "вы сказали «{said}» {date}, {where}",
    "ko": "{date}, {where}: “{said}”",
    "ja": "{date}、{where}：「{said}」",
    "zh": "{date}，{where}：“{said}”",
}
CORRECTED: Final[Texts] = {
    "en": "in your own words since {date}",
    "de": "in deinen eigenen Worten seit {date}",
    "es": "en tus propias palabras desde el {date}",
    "fr": "dans vos propres mots depuis le {date}",
    "it": "con parole tue dal {date}",
    "pt": "nas suas próprias palavras desde {date}",
    "ru": "вашими словами с {date}",
    "ko": "{date}부터 당신의 말로",
    "ja": "{date}からあなたの言葉で",
    "zh": "自 {date} 起是你自己的话",
}
SHARED: Final[Texts] = {
    "en": "groups may know",
    "de": "Gruppen dürfen es wissen",
    "es": "los grupos pueden saberlo",
    "fr": "les groupes peuvent le savoir",
    "it": "i gruppi possono saperlo",
    "pt": "os grupos podem saber",
    "ru": "группам можно знать",
    "ko": "그룹에도 공개",
    "ja": "グループにも公開",
    "zh": "群组可以知道",
}
DELETE_BUTTON: Final[Texts] = {
    "en": "Delete #{number}",
    "de": "#{number} löschen",
    "es": "Borrar #{number}",
    "fr": "Effacer #{number}",
    "it": "Cancella #{number}",
    "pt": "Apagar #{number}",
    "ru": "Удалить #{number}",
    "ko": "#{number} 지우기",
    "ja": "#{number} を削除",
    "zh": "删除 #{number}",
}
DELETED: Final[Texts] = {
    "en": "Deleted: #{number}. The message that it came from is still in its chat; /forget deletes that.",
    "de": "Gelöscht: #{number}. Die Nachricht, aus der es kam, steht noch in ihrem Chat; /forget löscht sie.",
    "es": "Borrado: #{number}. El mensaje del que salió sigue en su chat; /forget lo borra.",
    "fr": "Effacé : #{number}. Le message d’origine est encore dans sa discussion ; /forget l’efface.",
    "it": "Cancellato: #{number}. Il messaggio da cui veniva è ancora nella sua chat; /forget lo cancella.",
    "pt": "Apagado: #{number}. A mensagem de onde veio ainda está na conversa; /forget a apaga.",
    "ru": "Удалено: #{number}. Само сообщение ещё в своём чате; его удалит /forget.",
    "ko": "#{number} 지웠습니다. 원래 메시지는 대화에 남아 있으며 /forget 으로 지울 수 있습니다.",
    "ja": "#{number} を削除しました。元のメッセージはチャットに残っています。/forget で消せます。",
    "zh": "已删除 #{number}。它来自的消息还在聊天里；/forget 可删除它。",
}
CHANGED: Final[Texts] = {
    "en": "Done. #{number} is now: {text}",
    "de": "Erledigt. #{number} ist jetzt: {text}",
    "es": "Hecho. #{number} es ahora: {text}",
    "fr": "C’est fait. #{number} est maintenant : {text}",
    "it": "Fatto. #{number} ora è: {text}",
    "pt": "Feito. #{number} agora é: {text}",
    "ru": "Готово. #{number} теперь: {text}",
    "ko": "#{number} 을(를) 바꿨습니다: {text}",
    "ja": "#{number} を変えました：{text}",
    "zh": "好了。#{number} 现在是：{text}",
}
SHARING: Final[Texts] = {
    "en": "Done: every chat with you may know #{number}, groups too.",
    "de": "Erledigt: Jeder Chat mit dir darf #{number} wissen, auch Gruppen.",
    "es": "Hecho: todo chat contigo puede saber #{number}, también los grupos.",
    "fr": "C’est fait : toute discussion avec vous peut savoir #{number}, les groupes aussi.",
    "it": "Fatto: ogni chat con te può sapere #{number}, anche i gruppi.",
    "pt": "Feito: qualquer conversa com você pode saber #{number}, grupos também.",
    "ru": "Готово: #{number} могут знать все чаты с вами, и группы тоже.",
    "ko": "이제 당신이 있는 모든 대화와 그룹이 #{number} 을(를) 알 수 있습니다.",
    "ja": "#{number} は、グループを含むすべてのチャットで使われます。",
    "zh": "好了：有你的所有聊天和群组都可以知道 #{number}。",
}
UNSHARING: Final[Texts] = {
    "en": "Done: #{number} stays in your private chats, and in the chat where you said it.",
    "de": "Erledigt: #{number} bleibt in deinen privaten Chats und in dem Chat, in dem du es sagtest.",
    "es": "Hecho: #{number} queda en tus chats privados y en el chat donde lo dijiste.",
    "fr": "C’est fait : #{number} reste dans vos discussions privées et dans celle où vous l’avez dit.",
    "it": "Fatto: #{number} resta nelle tue chat private e in quella in cui l’hai detto.",
    "pt": "Feito: #{number} fica nas suas conversas privadas e naquela em que você disse.",
    "ru": "Готово: #{number} останется в личных чатах и в том, где вы это сказали.",
    "ko": "#{number} 은(는) 개인 대화와 말한 대화에만 남습니다.",
    "ja": "#{number} は個人チャットと、言ったチャットだけに留まります。",
    "zh": "好了：#{number} 只留在你的私聊和你说过它的聊天里。",
}
UNKNOWN: Final[Texts] = {
    "en": "There is no #{number} here. /memory lists what there is.",
    "de": "#{number} gibt es hier nicht. /memory zeigt, was es gibt.",
    "es": "Aquí no hay #{number}. /memory muestra lo que hay.",
    "fr": "Il n’y a pas de #{number} ici. /memory montre ce qu’il y a.",
    "it": "Qui non c’è #{number}. /memory mostra cosa c’è.",
    "pt": "Não há #{number} aqui. /memory mostra o que há.",
    "ru": "Здесь нет #{number}. /memory покажет, что есть.",
    "ko": "여기에 #{number} 은(는) 없습니다. /memory 로 목록을 볼 수 있습니다.",
    "ja": "ここに #{number} はありません。/memory で一覧を見られます。",
    "zh": "这里没有 #{number}。/memory 会列出现有的。",
}
NOBODY: Final[Texts] = {
    "en": "I cannot tell who you are here, so I keep nothing about you.",
    "de": "Ich kann hier nicht erkennen, wer du bist, darum merke ich mir nichts über dich.",
    "es": "Aquí no puedo saber quién eres, así que no guardo nada sobre ti.",
    "fr": "Je ne peux pas savoir ici qui vous êtes, je ne garde donc rien sur vous.",
    "it": "Qui non posso sapere chi sei, quindi non conservo nulla su di te.",
    "pt": "Não sei quem você é aqui, então não guardo nada sobre você.",
    "ru": "Здесь я не могу понять, кто вы, и ничего о вас не храню.",
    "ko": "여기서는 누구인지 알 수 없어 아무것도 기억하지 않습니다.",
    "ja": "ここではあなたが誰か分からないので、何も覚えません。",
    "zh": "在这里我无法知道你是谁，所以不会保存关于你的任何事。",
}
