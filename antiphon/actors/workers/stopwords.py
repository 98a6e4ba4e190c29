"""The commonest words of some languages: they tell which language a text is in, and nothing of
what it is about. Data."""

_WORDS = {
    "en": """
        a about after again against all also am an and any are as at be because been before
        being between but by can can't could did do does doing don't down during for from get
        give had has have he he's her here him his how i i'd i'll i'm i've if in into is isn't
        it it's its just know let like make may me more most much my no not now of off on one
        only or other our out over please she she's should since so some such than thank thanks
        that that's the their them then there there's these they they're this those through to
        too under until up us very want was we we're were what what's when where whether which
        while who why will with within without won't would yes you you're your""",
    "de": """
        aber alle als also am an auch auf aus bei bin bis bitte da danke das dass dein deine dem
        den der des die dies diese doch du ein eine einem einen einer eines er es etwas für gibt
        hab habe haben hat hatte hier ich ihm ihn ihr ihre im in ist ja jetzt kann kannst können
        man mehr mein meine meinem meinen meiner mich mir mit möchte nach nicht noch nur oder
        ohne sein seine sich sie sind so soll um und uns unser unsere vom von vor war was wenn
        wer werden wie wir wird wo würde zu zum zur über""",
    "fr": """
        ai aussi au aux avec bien c'est ce cela ces cet cette comme comment d'un d'une dans de
        des du elle elles en est et être fait il ils j'ai je l'a la le les leur leurs lui ma
        mais me merci mes moi mon même ne nos notre nous on ou où par pas plus pour pourquoi
        qu'il que quel quelle qui quoi s'il sa se ses si son sont sur ta te tes toi ton tout tu
        un une vos votre vous y à ça était""",
    "es": """
        a al algo como con cuando cuál cómo de del desde donde dónde el ella ellos en entre era
        es esa ese eso esta este esto está están favor fue gracias ha hay he la las le les lo
        los me mi mis muy más ni no nos nuestra nuestro o para pero por porque puede puedes que
        quien quiero qué se ser si sin sobre soy su sus sí también te tengo tiene todo tu tus un
        una uno y ya yo él""",
    "it": """
        a ai al alla anche c'è che chi ci come con cosa da dal dalla dei del della delle di dove
        e essere fa gli grazie ha ho i il in io la le lei lo lui ma me mi mia mio molto ne nel
        nella no noi non o per perché più puoi quale quando quello questa questo qui se sei si
        sia sono su sua suo tu tua tuo un una vi voi è""",
    "pt": """
        a ao aos as até com como da das de dela dele do dos e ela ele em entre era essa esse
        esta este está eu favor foi há isso isto já lhe mais mas me mesmo meu minha muito na nas
        nem no nos não o obrigado os ou para pela pelo por porque qual quando que quem se sem
        ser seu sua são também te tem tenho um uma você é""",
    "nl": """
        aan al alle als bij dan dat de deze die dit doe door dus een en er ga geen graag had heb
        hebben heeft het hier hij hoe hun ik in is ja jaar je jij kan kun kunnen maar me meer
        mij mijn moet na naar niet nog nu of om ons onze ook op over te tot uit u van veel voor
        waar was wat we wel wie wij wil worden wordt zij zijn zo zou""",
}

STOPWORDS = {language: frozenset(words.split()) for language, words in _WORDS.items()}
"""By language, ISO 639-1."""
ALL_STOPWORDS = frozenset[str]().union(*STOPWORDS.values())
