#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes Fortran modules from the public headers after the C preprocessor: trama_types (constants and types),
trama_raw (the functions as C has them) and trama_calls (the functions as Fortran programs call them).
Usage: fortran.py FOLDER C_COMPILER INCLUDE_FOLDER SOURCE.f90...

A function that a SOURCE defines is left to that source. FOLDER/left_out lists the functions that neither has."""
import os
import re
import sys

import fortran_calls
import fortran_headers


def constants(headers):
    """Where an enumerator has the name of a function, all enumerators of its enum get the enum's name in front: for
    Fortran TRAMA_SUM and trama_sum are one name."""
    functions = {f.friendly for f in headers.functions}
    for enum, values in headers.enums:
        clash = any(name.lower() in functions for name, _ in values)
        prefix = enum.upper().removesuffix("_KIND") if clash else "TRAMA"
        for name, value in values:
            yield f"integer(c_int), parameter, public :: {prefix}{name.removeprefix('TRAMA')} = {value}_c_int"
    for name, _, value in headers.macros:
        if re.fullmatch(r"-?\d+", value) and name.lower() in functions:
            sys.exit(f"fortran.py: {name} and {name.lower()}() are one name in Fortran; another name is needed")
        if re.fullmatch(r"-?\d+", value):
            yield f"integer(c_int), parameter, public :: {name} = {value}_c_int"


def fields(headers, struct):
    for field in headers.structs[struct]:
        declared, start = headers.fortran(field.type)
        yield f"{declared} :: {field.name}" + (f"({field.extent})" if field.extent else "") + f" = {start}"


def types(headers, defined):
    """A handle is a pointer to an object of C. Other types have C's fields, with zeros as defaults. Types with the
    name of a constant are left out: halves are 16-bit integers here."""
    named = {name.lower() for _, values in headers.enums for name, _ in values}
    for handle in headers.handles:
        yield from (f"type, public :: {handle}", "    type(c_ptr) :: at = c_null_ptr", "end type")
    for struct in headers.structs:
        if struct not in {*headers.handles, *defined, *named}:
            yield f"type, bind(c), public :: {struct}"
            yield from ("    " + line for line in fields(headers, struct))
            yield "end type"


def interface(headers, f):
    kind = "subroutine" if f.result == "void" else "function"
    arguments = ", ".join(p.name for p in f.parameters)
    result = "" if f.result == "void" else " result(answer)"
    yield f'{kind} {f.raw}({arguments}) bind(c, name="{f.name}"){result}'
    yield "    import"
    for p in f.parameters:
        yield f"    {headers.fortran(p.type)[0]}, value :: {p.name}"
    if f.result != "void":
        yield f"    {headers.fortran(f.result)[0]} :: answer"
    yield f"end {kind}"


def pointers(headers):
    """Procedures that give a kernel a box as an array: one for each element type and each rank, since with an assumed
    rank gfortran reads the old value of a pointer."""
    lists = "".join(text for name, _, text in headers.macros if name in ("TRAMA_REAL_DTYPE_LIST", "TRAMA_COMPLEX_DTYPE_LIST"))
    listed = re.findall(r'X\((\w+), "\w+", (\w+)\)', lists)
    kinds = {fortran_headers.NUMBERS.get(c_type, "integer(c_int16_t)"): name.removeprefix("TRAMA_").lower()
             for name, c_type in listed}
    ranks = {rank: f"({', '.join(':' * rank)})" if rank else "" for rank in range(9)}
    line = "    integer(c_int64_t), intent(in), optional :: line"
    yield "interface"
    for kind, name in kinds.items():
        yield f'    integer(c_int) function point_{name}(call, of_result, i, array, line) bind(c, name="trama_fortran_point")'
        yield from ("        import", "        type(c_ptr), value :: call", "        logical(c_bool), value :: of_result",
                    "        integer(c_int), value :: i", f"        {kind}, pointer, intent(inout) :: array(..)",
                    "    " + line, "    end function")
    yield "end interface"
    for which in ("operand", "result"):
        yield f"public :: trama_call_{which}"
        yield f"interface trama_call_{which}"
        for name in kinds.values():
            yield f"    module procedure {', '.join(f'{which}_{name}_{rank}' for rank in ranks)}"
        yield "end interface"
    yield "contains"
    for which, flag in (("operand", "false"), ("result", "true")):
        for kind, name in kinds.items():
            for rank, colons in ranks.items():
                yield f"integer(c_int) function {which}_{name}_{rank}(call, i, array, line) result(answer)"
                yield from ("    type(trama_call), intent(in), target :: call", "    integer, intent(in) :: i",
                            f"    {kind}, pointer, intent(out) :: array{colons}", line, "    nullify (array)")
                yield f"    answer = point_{name}(c_loc(call), .{flag}._c_bool, int(i, c_int), array, line)"
                yield "end function"


# Calls that become operators, where the headers have them; commuted ones also take the number first.
OPERATORS = {"+": ("trama_add", "trama_add_scalar"), "-": ("trama_sub", "trama_neg", "trama_sub_scalar", "trama_scalar_sub"),
             "*": ("trama_mul", "trama_scale"), "/": ("trama_div", "trama_div_scalar", "trama_scalar_div")}
COMMUTED = ("trama_add_scalar", "trama_scale")


def operators(made):
    """The interfaces of operators, and the functions with the number first."""
    names = {call.name for call in made}
    commuted = [name for name in COMMUTED if name in names]
    interfaces, functions = [], []
    for sign, calls in OPERATORS.items():
        procedures = [name for name in calls if name in names]
        procedures += [f"commuted_{name}" for name in commuted if name in calls]
        interfaces += [f"public :: operator({sign})", f"interface operator({sign})",
                       f"    module procedure {', '.join(procedures)}", "end interface"]
    for name in commuted:
        functions += [f"function commuted_{name}(number, x) result(answer)", "    real(c_double), intent(in) :: number",
                      "    type(trama_value), intent(in) :: x", "    type(trama_value) :: answer",
                      f"    answer = {name}(x, number)", "end function"]
    return interfaces, functions


def folded(lines, depth):
    """Indents lines, and continues those that are too long for Fortran."""
    for line in lines:
        line = "    " * depth + line
        while len(line) > 120:
            at = line.rfind(",", 0, 116) + 1
            yield line[:at] + " &"
            line = "    " * (depth + 2) + line[at:].lstrip()
        yield line.rstrip()


def write(folder, name, lines):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def module(name, uses, parts):
    yield "! SPDX-License-Identifier: Apache-2.0"
    yield "!> Made by cmake/fortran.py out of Trama's public headers, which describe the functions: not to be changed."
    yield f"module {name}"
    yield from ("    use " + used for used in ("iso_c_binding", *uses))
    yield from ("    implicit none", "    private", "")
    yield from parts
    yield f"end module {name}"


def types_module(headers, defined):
    yield from folded(constants(headers), 1)
    yield ""
    yield from folded(types(headers, defined), 1)


def raw_module(headers):
    yield from folded((f"public :: {f.raw}" for f in headers.functions), 1)
    yield from ("", "    interface")
    for f in headers.functions:
        yield from folded(interface(headers, f), 2)
    yield "    end interface"


def calls_module(headers, made):
    generic = [call for call in made if len(call.names) > 1]
    for call in made:
        yield f"    public :: {call.name}"
    for call in generic:
        yield from (f"    interface {call.name}", f"        module procedure {', '.join(call.names)}", "    end interface")
    interfaces, functions = operators(made)
    yield from folded([*interfaces, *pointers(headers), *functions], 1)
    for call in made:
        for lines in call.bodies:
            yield ""
            yield from folded(lines, 1)


def main(folder, compiler, include, *sources):
    headers = fortran_headers.read(compiler, include)
    defined = set()
    for source in sources:
        text = open(source, encoding="utf-8").read()
        defined |= set(re.findall(r"^    (?:interface|type, bind\(c\) ::|(?:[\w()]+ )*(?:function|subroutine)) (trama_\w+)",
                                  text, re.M))
    made, left_out = [], []
    for f in headers.functions:
        if f.friendly not in defined:
            call = fortran_calls.made_of(headers, f)
            made.append(call) if call else left_out.append(f.friendly)
    short = (fortran_calls.made_of_macro(headers, *macro) for macro in headers.macros if macro[0] not in defined)
    made += filter(None, short)
    os.makedirs(folder, exist_ok=True)
    write(folder, "trama_types.f90", module("trama_types", (), types_module(headers, defined)))
    write(folder, "trama_raw.f90", module("trama_raw", ("trama_types",), raw_module(headers)))
    write(folder, "trama_calls.f90",
          module("trama_calls", ("trama_types", "trama_raw", "trama_support"), calls_module(headers, made)))
    write(folder, "left_out", sorted({*left_out, *(f.name for f in headers.only_c)} - defined))


main(*sys.argv[1:])
