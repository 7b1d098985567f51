"""What /export says, in ten languages."""
# ruff: noqa: RUF001 - ten languages have their own signs

from typing import Final

from botservice.commands.command import Texts

MENU: Final[Texts] = {
    "en": "Send me all that you keep of me, as a file",
    "de": "Schick mir alles, was du von mir aufbewahrst, als Datei",
    "es": "Envíame en un archivo todo lo que guardas de mí",
    "fr": "M’envoyer dans un fichier tout ce que vous gardez de moi",
    "it": "Mandami in un file tutto ciò che conservi di me",
    "pt": "Envie-me em um arquivo tudo o que guarda de mim",
    "ru": "Прислать файлом всё, что вы обо мне храните",
    "ko": "나에 대해 보관하는 모든 것을 파일로 받기",
    "ja": "保管している私のすべてをファイルで受け取る",
    "zh": "把你保存的关于我的一切以文件发给我",
}
HERE_IT_IS: Final[Texts] = {
    "en": "All that I keep of you: what you wrote in every chat, what I answered, your files, and what I know of you. "
    "Open about-you.md first; data.json has the same for programs.",
    "de": "Alles, was ich von dir aufbewahre: was du in jedem Chat schriebst, was ich antwortete, deine Dateien und "
    "was "
    "ich über dich weiß. Öffne zuerst about-you.md; data.json enthält dasselbe für Programme.",
    "es": "Todo lo que guardo de ti: lo que escribiste en cada chat, lo que respondí, tus archivos y lo que sé de "
    "ti. Abre "
    "primero about-you.md; data.json tiene lo mismo para programas.",
    "fr": "Tout ce que je garde de vous : vos messages dans chaque discussion, mes réponses, vos fichiers et ce que je "
    "sais de vous. Ouvrez d’abord about-you.md ; data.json contient la même chose pour les programmes.",
    "it": "Tutto ciò che conservo di te: ciò che hai scritto in ogni chat, ciò che ho risposto, i tuoi file e ciò "
    "che so "
    "di te. Apri prima about-you.md; data.json contiene lo stesso per i programmi.",
    "pt": "Tudo o que guardo de você: o que escreveu em cada conversa, o que respondi, seus arquivos e o que sei de "
    "você. "
    "Abra primeiro about-you.md; data.json tem o mesmo para programas.",
    "ru": "Всё, что я о вас храню: что вы писали в каждом чате, что я отвечал, ваши файлы и что я о вас знаю. Сначала "
    "откройте about-you.md; в data.json то же для программ.",
    "ko": "보관 중인 모든 것입니다: 각 대화에서 쓴 글, 답변, 파일, 아는 것. 먼저 about-you.md 를 여세요. data.json 은 "
    "프로그램용입니다.",
    "ja": "保管しているすべてです：各チャットで書いたこと、返事、ファイル、知っていること。まず about-you.md "
    "を開いてください。"
    "data.json はプログラム用です。",
    "zh": "我保存的关于你的一切：你在每个聊天里写的、我答的、你的文件，以及我对你的了解。先打开 about-you.md；"
    "data.json 供程序使用。",
}
IN_PRIVATE: Final[Texts] = {
    "en": "That is between you and me: write /export to me in a private chat.",
    "de": "Das ist zwischen dir und mir: Schreib mir /export in einem privaten Chat.",
    "es": "Eso queda entre tú y yo: escríbeme /export en un chat privado.",
    "fr": "Cela reste entre nous : écrivez-moi /export en privé.",
    "it": "Resta tra noi: scrivimi /export in privato.",
    "pt": "Isso fica entre nós: escreva /export para mim em particular.",
    "ru": "Это между нами: напишите мне /export в личном чате.",
    "ko": "우리 둘만의 일입니다. 개인 대화에서 /export 라고 보내 주세요.",
    "ja": "二人だけの話です。個人チャットで /export と送ってください。",
    "zh": "这只在我们之间：请在私聊里给我发 /export。",
}
