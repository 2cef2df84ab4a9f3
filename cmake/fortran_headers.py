# SPDX-License-Identifier: Apache-2.0
"""Reads the public headers after the C preprocessor: enums, structs, functions."""
import re
import subprocess
import sys
from dataclasses import dataclass, field




NUMBERS = {"int": "integer(c_int)", "unsigned": "integer(c_int)", "unsigned int": "integer(c_int)",
           "int64_t": "integer(c_int64_t)", "uint64_t": "integer(c_int64_t)", "int32_t": "integer(c_int32_t)",
           "uint32_t": "integer(c_int32_t)", "uint8_t": "integer(c_int8_t)", "int8_t": "integer(c_int8_t)", "int16_t": "integer(c_int16_t)", "uint16_t": "integer(c_int16_t)", "unsigned char": "integer(c_int8_t)",
           "size_t": "integer(c_size_t)", "float": "real(c_float)", "double": "real(c_double)", "bool": "logical(c_bool)",
           "trama_c64": "complex(c_float_complex)", "trama_c128": "complex(c_double_complex)"}


class Unknown(Exception):
    """A type that Fortran does not have."""


@dataclass
class Declared:
    """A parameter or a field: its type without const, with the stars of a pointer; "()" for a function pointer."""
    type: str
    name: str
    constant: bool = False
    extent: str = ""
    is_list: bool = False  # const char *const *, trama_value *const *: an array of pointers from the caller


@dataclass
class Function:
    name: str
    result: str  # the caller owns a "char *", the library a "const char *"
    parameters: list
    friendly: str = ""
    raw: str = ""


@dataclass
class Headers:
    enums: list = field(default_factory=list)      # (name, [(enumerator, value)])
    macros: list = field(default_factory=list)     # (name, parameters, text)
    structs: dict = field(default_factory=dict)    # name -> [Declared]
    opaque: list = field(default_factory=list)
    callbacks: set = field(default_factory=set)    # types of functions
    functions: list = field(default_factory=list)
    only_c: list = field(default_factory=list)    # functions that only C can call
    handles: list = field(default_factory=list)

    def is_enum(self, name):
        return any(enum == name for enum, _ in self.enums)

    def fortran(self, c_type):
        """The interoperable type, and the zero of it."""
        if c_type == "()" or c_type in self.callbacks:
            return "type(c_funptr)", "c_null_funptr"
        if "*" in c_type:
            return "type(c_ptr)", "c_null_ptr"
        if self.is_enum(c_type):
            return "integer(c_int)", "0"
        if c_type in NUMBERS:
            return NUMBERS[c_type], ".false._c_bool" if c_type == "bool" else "0"
        if c_type in self.structs:
            return f"type({c_type})", f"{c_type}()"
        raise Unknown(f"fortran.py: no Fortran type for '{c_type}'")


def preprocessed(compiler, include):
    """Macros (name, parameters, text) and the text of Trama's own headers, without comments."""
    run = subprocess.run([*compiler.split(";"), "-std=c17", "-E", "-dD", "-I", include, f"{include}/trama.h"],
                         capture_output=True, text=True, check=False)
    if run.returncode:
        sys.exit(run.stderr)
    macros, text, ours = [], [], False
    for line in run.stdout.splitlines():
        if marker := re.match(r'# \d+ "(.*)"', line):
            ours = re.search(r"trama[a-z_]*\.h$", marker[1]) is not None
        elif ours and (macro := re.match(r"#define (trama_\w+|TRAMA_\w+)(\(.*?\))? (.*)", line)):
            macros.append((macro[1], split((macro[2] or "()")[1:-1]), re.sub(r"^\((-?\d+)\)$", r"\1", macro[3])))
        elif ours and not line.startswith("#"):
            text.append(line.replace("_Bool", "bool"))
    return macros, re.sub(r"\s+", " ", " ".join(text))


def statements(text):
    """Each declaration without its semicolon, (text before a body, body)."""
    depth, start, body = 0, 0, None
    for i, character in enumerate(text):
        depth += (character in "({") - (character in ")}")
        if character == "{" and depth == 1:
            body = i
        is_function = body is not None and text[:body].rstrip().endswith(")")
        if depth == 0 and (character == ";" or (character == "}" and is_function)):
            yield (text[start:body].strip(), text[body + 1:text.rfind("}", 0, i + 1)]) if body is not None else \
                (text[start:i].strip(), None)
            start, body = i + 1, None


def split(text):
    """Splits at the commas outside brackets."""
    parts = re.split(r",\s*(?![^(]*\))", text.strip())
    return [part.strip() for part in parts if part.strip()]


def declared(text):
    """One declarator: "const char *const *names", "int64_t dim[8]", "void (*log)(...)"."""
    if callback := re.search(r"\(\*(\w+)\)\s*\(", text):
        return Declared("()", callback[1])
    match = re.match(r"([^()]*?)(\w+)(?:\[(\w*)\])?$", text)
    if not match:
        return Declared("unknown", text)
    c_type = re.sub(r"\b(const|struct|enum)\b", " ", match[1])
    c_type = " ".join(c_type.replace("*", " * ").split()).replace("* *", "**")
    return Declared(c_type, match[2], text.startswith("const "), match[3] or "", re.search(r"\*\s*const\s*\*", text) is not None)


def fields_of(body):
    """Separates declarators that share a type."""
    for text in filter(None, (part.strip() for part in body.split(";"))):
        if "(*" in text:
            yield declared(text)
            continue
        first, *rest = split(text)
        yield declared(first)
        base = re.match(r"(.*?)[\s*]*\w+(\[\w*\])?$", first)[1]
        yield from (declared(f"{base} {other}") for other in rest)


def enumerators(body, known):
    value = -1
    for text in split(body):
        name, _, given = text.partition("=")
        value = eval(given, {}, known) if given.strip() else value + 1  # of the compiler's own headers
        known[name.strip()] = value
        yield name.strip(), value


def learn(headers, head, body, known):
    head = re.sub(r"__attribute__\s*\(\(.*?\)\)\s*(?=$|;|\w|\))", "", head).strip()
    if match := re.match(r"(?:typedef )?enum ?(\w*)$", head):
        headers.enums.append((match[1], list(enumerators(body, known))))
    elif body is not None and (match := re.match(r"(?:typedef )?struct (\w+)$", head)):
        headers.structs[match[1]] = list(fields_of(body))
    elif match := re.match(r"typedef struct (\w+) \w+$", head):
        headers.opaque.append(match[1])
    elif match := re.match(r"typedef .*\(\*(\w+)\)", head):
        headers.callbacks.add(match[1])
    elif match := re.match(r"typedef [\w ]+[ *](\w+) ?\(", head):
        headers.callbacks.add(match[1] + " *")
    elif match := re.match(r"(?:static inline )?([\w ]+[ *]+)(trama_\w+) ?\((.*)\)$", head):
        if body is not None or "..." in match[3]:
            headers.only_c.append(Function(match[2], "", []))
            return
        parameters = [declared(p) for p in split(match[3]) if p != "void"]
        result = " ".join(match[1].replace("*", " * ").replace("struct ", "").split())
        headers.functions.append(Function(match[2], result if result == "const char *" else
                                          result.removeprefix("const "), parameters))


def is_known(headers, f):
    try:
        return all(headers.fortran(p.type) for p in f.parameters) and (f.result == "void" or headers.fortran(f.result))
    except Unknown:
        return False


def named(headers):
    """Sets the name by which programs call a function: its macro that passes the place, where it has one."""
    macros = {}
    for name, _, text in headers.macros:
        if called := re.match(r"(trama_\w+_at)\(TRAMA_HERE", text):
            macros.setdefault(called[1], []).append(name)
    for f in headers.functions:
        plain = f.name.removesuffix("_at") if f.parameters and f.parameters[0].type == "trama_where" else f.name
        by = macros.get(f.name, [plain])
        f.friendly = plain if plain in by or len(by) > 1 else by[0]
        f.raw = "raw" + f.name.removeprefix("trama").removesuffix("_at")


def read(compiler, include):
    headers, known = Headers(), {}
    headers.macros, text = preprocessed(compiler, include)
    for head, body in statements(text):
        learn(headers, head, body, known)
    returned = {f.result.removesuffix(" *") for f in headers.functions if f.result.endswith(" *")}
    headers.handles = [name for name in dict.fromkeys(headers.opaque)
                       if name in returned or name not in headers.structs]
    named(headers)
    headers.only_c += [Function(f.friendly, "", []) for f in headers.functions if not is_known(headers, f)]
    headers.functions = [f for f in headers.functions if is_known(headers, f)]
    return headers
