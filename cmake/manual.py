#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Converts the comments of a public header to Doxygen's form, line for line (as its INPUT_FILTER); or writes man pages,
one for each function, macro and type, into a folder.
Usage: manual.py HEADER | manual.py --man FOLDER VERSION HEADER...

A comment describes all declarations after it, up to the next blank line or comment. A comment behind a declaration
describes that declaration alone, together with the comment above where that ends with a colon.
A builder's macro and its function with _at become one declaration: the macro's name with the function's types."""
import os
import re
import sys

header = ""
lines = []
output = []
pages = []  # (name, declaration, as a function, description, paragraph)
lists = {}  # X-macro lists: name -> [(item, rest)]
functions = {}  # name -> (type of the result, [parameters])
builders = set()  # functions that a macro stands for


def split(text):
    """Splits at the commas outside all brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def code_of(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def hide_cplusplus():
    """Drops conditionals, and the lines for C++ only."""
    hidden = False
    for i, line in enumerate(lines):
        if re.match(r"#\s*ifdef __cplusplus", line):
            hidden = True
        elif hidden and re.match(r"#\s*(else|endif)", line):
            hidden = False
        elif re.fullmatch(r"TRAMA_API_(BEGIN|END)", line):
            line = "#"
        elif not hidden and not re.match(r"#\s*(if|else|endif|include|undef)|#define TRAMA_(\w+_)?H$", line):
            continue
        lines[i] = "#" if hidden or line.startswith("#") else ""


def end_of(first):
    """The last line of the comment, macro or declaration that begins here."""
    depth = 0
    for i in range(first, len(lines)):
        if lines[first].startswith("/*"):
            if "*/" in lines[i]:
                return i
            continue
        if lines[first].startswith("#"):
            if not lines[i].endswith("\\"):
                return i
            continue
        text = code_of("\n".join(lines[first:i + 1])).split("/*")[0]
        depth = text.count("{") - text.count("}") + text.count("(") - text.count(")")
        whole = "\n".join(lines[first:i + 1])
        if i > first and lines[i].startswith("#define trama_"):
            break
        if depth == 0 and re.search(r"^TRAMA_\w+\(TRAMA_\w+\)$", lines[first]):
            return i
        if depth == 0 and re.search(r"[;}]\s*$", text) and whole.count("/*") == whole.count("*/"):
            return i
    sys.exit(f"{header}:{first + 1}: no end")


def statements():
    i = 0
    while i < len(lines):
        last = end_of(i) if lines[i] else i
        yield i, last, "\n".join(lines[i:last + 1])
        i = last + 1


def learn(text):
    """Notes lists and prototypes, for later declarations."""
    flat = re.sub(r"\s+", " ", code_of(text).replace("\\\n", " ")).strip()
    if match := re.match(r"#define (TRAMA_\w+)\(X\) (.*)", flat):
        lists[match[1]] = re.findall(r"X\((\w+)(?:, ([^)]*))?\)", flat)
    elif match := re.match(r"#define (TRAMA_DECLARE_\w+)\(name\) (.*)", flat):
        lists[match[1]] = match[2]
    elif match := re.match(r"(TRAMA_\w+)\((TRAMA_DECLARE_\w+)\)(.*)", flat):
        for item, _ in lists[match[1]]:
            learn(lists[match[2]].replace("##name##", item))
        learn(match[3])
    elif match := re.match(r"([\w ]+[ *]+)(trama_\w+)\((.*)\);$", flat):
        functions[match[2]] = (match[1], split(match[3]))
    elif match := re.match(r"#define trama_\w+\(.*?\) (\w+_at)\(TRAMA_HERE", flat):
        builders.add(match[1])


def as_declaration(text):
    """The declaration of a macro: its name and parameters with the types of its function."""
    flat = re.sub(r"\s+", " ", code_of(text).replace("\\\n", " ")).strip()
    match = re.match(r"#define (trama_\w+)\((.*?)\) (\w+_at)\((TRAMA_HERE.*)\)$", flat)
    if not match or match[3] not in functions:
        return None
    result, parameters = functions[match[3]]
    given = split(match[4])
    typed = []
    for name in split(match[2]):
        value = "__VA_ARGS__" if name == "..." else name
        if value in given:
            typed.append(re.sub(r"\w+$", "", parameters[given.index(value)]) +
                         (re.search(r"\w+$", parameters[given.index(value)])[0] if name == "..." else name))
        else:
            typed.append("...")
    function = f"{result}{match[3]}({', '.join(parameters)})"
    return f"{result}{match[1]}({', '.join(typed)});", function


def written_out(text, between):
    """The text with the items of an enum's lists written out."""
    def items(match):
        return between.join(f'{item}, /* {rest.replace(chr(34), "")} */' for item, rest in lists[match[1]])
    text = re.sub(r"^(#define \w+_ENUM.*|#(undef.*)?)$", "", text, flags=re.M)
    return re.sub(r"(TRAMA_\w+)\(TRAMA_\w+_ENUM\)", items, text)


def members(first, text):
    """Converts the comments inside a struct or an enum."""
    text = written_out(text, " ")
    if "{" not in text or "enum" not in text.split("{")[0]:
        text = re.sub(r"(?m)^([ \t]+)/\*((?:(?!\*/).)*)\*/\n(.*,.*;)$", one_by_one_below, text)
        text = re.sub(r"(?ms)^[ \t]+([\w ]+[ *]+)(\w+(?:\[\w+\])?(?:, \w+(?:\[\w+\])?)+);[ \t]*/\*((?:(?!\*/).)*)\*/",
                      one_by_one, text)
    elif len([x for x in split(code_of(text.split("{", 1)[1].rsplit("}", 1)[0])) if x]) != text.count("/*"):
        sys.exit(f"{header}:{first + 1}: an enumerator without a comment")
    text = re.sub(r"(?m)(?<=\S)([ \t]*)/\*(?!\*)", r"\1/**<", text)
    return re.sub(r"(?m)^([ \t]*)/\*(?!\*)", r"\1/**", text)


def one_by_one(match):
    """Separates fields that share a type and a comment."""
    comment = " ".join(match[3].split())
    fields = " ".join(f"{match[1]}{name}; /* {comment} */" for name in split(match[2]))
    return fields + "\n" * match[0].count("\n")


def one_by_one_below(match):
    return f"{match[1]}{match[3].strip()} /*{match[2]}*/\n"


def put(first, text):
    for i, line in enumerate(text.split("\n")):
        output[first + i] += line


def describe(first, text, comment, is_first):
    """Puts out one macro, type or function, with its own comment, or else the one above that it shares with others."""
    declared = as_declaration(text)
    trailing = re.search(r"/\*((?:(?!\*/).)*)\*/\s*$", text, flags=re.S)
    own = trailing and (declared or not re.match(r"#define|((typedef )?(struct|enum)\b.*\{)", text))
    if (called := re.match(r"\w.*?\b(\w+_at)\(", text)) and called[1] in builders or "TRAMA_DECLARE_" in text:
        return
    flat = re.sub(r"\s*\n \*", "", comment).strip()
    alone = " ".join(trailing[1].split()) if own else ""
    said = alone or ("" if is_first else flat)
    if alone and flat.endswith(":"):
        said = alone + ". " + flat[:-1] + "."
    before = f"/** {said} */ " if said and not text.startswith("#define TRAMA") else ""
    if declared:
        after = f" /**< @details As a function: `{declared[1]}` */" if said or comment else ""
        put(first, before + declared[0] + after)
    else:
        put(first, before + (text[:trailing.start()] if own else members(first, text)))
    described = said if alone and (not is_first or flat.endswith(":")) else "\n".join(filter(None, [comment, alone]))
    shown = declared[0] if declared else text[:trailing.start()] if own else \
        re.sub(r"\n\n+", "\n", written_out(text, "\n    "))
    name = re.search(r"#define (\w+)|\(\*(trama_\w+)\)|(trama_\w+)\(|\b(trama_\w+);\s*$|(?:enum|struct) (\w+) ", shown)
    if name and described:
        pages.append((next(filter(None, name.groups())), shown, declared and declared[1], described, comment))


def read(path):
    global header, lines, output
    header, lines = path, open(path, encoding="utf-8").read().splitlines()
    output = [""] * len(lines)
    hide_cplusplus()
    for _, _, text in statements():
        learn(text)
    comment, is_first, documented = "", False, False
    for first, last, text in statements():
        if not text:
            comment = ""
        elif text == "#" or "SPDX" in text or text.startswith("/* ----"):
            pass
        elif text.startswith("/*"):
            put(first, text.replace("/*", "/**" if documented else " *", 1))
            output[first - 1] += "" if documented else "/** @file"
            comment, is_first, documented = text[2:-2] if documented else "", documented, True
        else:
            describe(first, text, comment, is_first)
            is_first = False


def roff(text):
    text = text.replace("\\", "\\e")
    return re.sub(r"(?m)^([.'])", r"\\&\1", text)


def description(text):
    """A comment's text for a man page, filled; each item of a list begins a line."""
    text = re.sub(r"\n \* ?", "\n", text).strip()
    return re.sub(r"(?m)^- ", ".br\n\\- ", roff(text)).replace("\n\n", "\n.PP\n")


def write_pages(folder, version):
    os.makedirs(folder, exist_ok=True)
    paragraphs = {}
    for name, *_, paragraph in pages:
        paragraphs.setdefault(paragraph or name, []).append(name)
    for name, shown, function, described, paragraph in pages:
        title = re.split(r"(?<=[.;:])\s", " ".join(re.sub(r"\n \* ?", "\n", described).split()))[0].rstrip(".;:")
        also = [f".BR {other} (3)" for other in paragraphs[paragraph or name] if other != name]
        page = [f'.TH {name} 3 "" "Trama {version}" "Trama"', ".SH NAME", f"{name} \\- {roff(title)}",
                ".SH SYNOPSIS", ".nf", "#include <trama.h>", "", roff(shown.strip()), ".fi",
                ".SH DESCRIPTION", description(described)]
        if function:
            page += [".SH AS A FUNCTION", ".nf", roff(function) + ";", ".fi"]
        if name != "trama_error":
            also.append(".BR trama_error (3)")
        page += [".SH SEE ALSO", ",\n".join(also)] if also else []
        with open(os.path.join(folder, name + ".3"), "w", encoding="utf-8") as file:
            file.write("\n".join(page) + "\n")


if sys.argv[1] == "--man":
    for argument in sys.argv[4:]:
        read(argument)
    write_pages(sys.argv[2], sys.argv[3])
else:
    read(sys.argv[1])
    print("\n".join(output))
