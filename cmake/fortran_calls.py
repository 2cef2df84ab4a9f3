# SPDX-License-Identifier: Apache-2.0
"""Makes the Fortran procedure of one C function. Each rule takes the next parameters where they fit its pattern, and
adds the argument that a program gives for them and its conversion. A function with a parameter that fits no rule is not
made."""
import re
from dataclasses import dataclass, field

import fortran_headers

FROM_ONE = {"i", "axis", "from"}  # count from 0 in C, from 1 in Fortran; ids, ranks from 0 in both
WIDE = {"int64_t", "uint64_t", "size_t"}


@dataclass
class Call:
    """A procedure in the making; {kind} stands for the kind of wide integers."""
    headers: object
    function: object
    arguments: list = field(default_factory=list)
    declared: list = field(default_factory=list)
    local: list = field(default_factory=list)
    before: list = field(default_factory=list)
    actual: list = field(default_factory=list)
    after: list = field(default_factory=list)
    values: list = field(default_factory=list)  # arguments that are trama_value, in order
    array: str = ""                             # the check before the call
    wide: bool = False                          # some are wide integers
    variants: list = field(default_factory=lambda: [("", {})])
    name: str = ""
    names: list = field(default_factory=list)
    bodies: list = field(default_factory=list)

    def take(self, name, declared, actual):
        self.arguments.append(name)
        self.declared.append(f"{declared} :: {name}")
        self.actual.append(actual)

    def keep(self, declared, name):
        self.local.append(f"{declared} :: {name}")


def place(c, p, rest):
    if p.type == "trama_where":
        c.actual.append("here()")
        return 1


def reduction(c, p, rest):
    """int n, const int *dims, bool keep_dim: no dims (all), one dim, or a list."""
    if p.type == "int" and [q.name for q in rest[:2]] == ["dims", "keep_dim"]:
        listed_dims(c)
        c.arguments += ["{dims}", "keep_dim"]
        c.declared += ["{dims_declared}", "logical, intent(in), optional :: keep_dim"]
        c.before.append(f'call set_dims("{c.function.friendly}", of, dims_c, n, {{dims}})')
        c.actual += ["n", "c_loc(dims_c)", "chosen(keep_dim)"]
        c.variants = [("_one", {"dims": "dim", "dims_declared": "integer, intent(in), optional :: dim"}),
                      ("_many", {"dims": "dims", "dims_declared": "integer, intent(in) :: dims(:)"})]
        return 3


def dims(c, p, rest):
    """int n, const int *dims: a list."""
    if p.type == "int" and rest and rest[0].name == "dims" and rest[0].constant and c.values:
        listed_dims(c)
        c.before.append(f'call set_dims("{c.function.friendly}", of, dims_c, n, dims)')
        c.take("dims", "integer, intent(in)", "n")
        c.declared[-1] += "(:)"
        c.actual.append("c_loc(dims_c)")
        return 2


def listed_dims(c):
    """Checks dims against the value, which becomes empty where it has no such dim."""
    c.keep("integer(c_int), target", "dims_c(TRAMA_MAX_NDIM)")
    c.keep("integer(c_int)", "n")
    c.keep("type(c_ptr)", "of")
    c.before.append(f"of = {c.values[0]}%at")
    c.actual[c.actual.index(c.values[0] + "%at")] = "of"


def is_count(p, rest):
    return p.type == "int" and re.match(r"n(_|$)", p.name) and rest


def handles(c, p, rest):
    """int n, trama_value *const *values"""
    if is_count(p, rest) and rest[0].is_list and rest[0].type.removesuffix(" **") in c.headers.handles:
        name, handle = rest[0].name, rest[0].type.removesuffix(" **")
        c.keep("type(c_ptr), target", f"{name}_c(size({name}) + 1)")
        c.keep("integer", "j")
        c.before += [f"{name}_c = c_null_ptr", f"do j = 1, size({name})", f"    {name}_c(j) = {name}(j)%at", "end do"]
        c.take(name, f"type({handle}), intent(in)", f"size({name}, kind=c_int)")
        c.declared[-1] += "(:)"
        c.actual.append(f"c_loc({name}_c)")
        return 2


def numbers(c, p, rest):
    """int n, const int *order"""
    if is_count(p, rest) and rest[0].type == "int *" and rest[0].constant:
        name = rest[0].name
        c.keep("integer(c_int), target", f"{name}_c(size({name}) + 1)")
        c.before.append(f"{name}_c = [int({name}, c_int), 0_c_int]")
        c.take(name, "integer, intent(in)", f"size({name}, kind=c_int)")
        c.declared[-1] += "(:)"
        c.actual.append(f"c_loc({name}_c)")
        return 2


def texts(c, p, rest):
    """int n, const char *const *layouts: blank ones are NULL."""
    if is_count(p, rest) and rest[0].type == "char **" and rest[0].is_list:
        name = rest[0].name
        c.keep("type(text_list), target", f"{name}_c")
        c.before.append(f"call {name}_c%fill({name})")
        c.take(name, "character(*), intent(in)", f"size({name}, kind=c_int)")
        c.declared[-1] += "(:)"
        c.actual.append(f"{name}_c%at()")
        return 2


def array(c, p, rest):
    """[dtype, shape,] data [, bytes or shape]: one array of any type and rank, which has all of these."""
    given = [q.type + q.name for q in (p, *rest)]
    start = 2 if given[:2] == ["trama_dtypedtype", "trama_shapeshape"] else 0
    if len(given) <= start or given[start] != "void *data":
        return None
    reads = ([p, *rest][start]).constant
    last = 1 if given[start + 1:start + 2] in (["size_tbytes"], ["trama_shapeshape"]) else 0
    if not start + last:
        return None
    c.keep("type(lent_array), target", "data_c")
    value = c.values[-1] + "%at" if c.values else "c_null_ptr"
    program = "c_null_ptr" if c.function.result == "trama_status" else "program%at"
    dtype = "chosen_dtype(dtype)" if start else "-1_c_int"
    c.array = f'lent(data_c, "{c.function.friendly}", {program}, {value}, {dtype}, data)' if reads else \
        f'lent_room(data_c, "{c.function.friendly}", {value}, data)'
    c.arguments.append("data")
    c.declared.append(f"type(*), {'intent(in)' if reads else 'intent(inout), optional'}, target :: data(..)")
    if start:
        c.arguments.append("dtype")
        c.declared.append("integer, intent(in), optional :: dtype")
        c.actual += ["data_c%dtype", "data_c%shape"]
    c.actual.append("data_c%data")
    if last:
        c.actual.append("data_c%bytes" if given[start + 1] == "size_tbytes" else "data_c%shape")
    c.after.append(f"call give_back(data_c, {'.false.' if reads else 'answer == TRAMA_OK'}, data)")
    return start + 1 + last


def box(c, p, rest):
    """int64_t *offset, int64_t *extent, of a box of the value, or of the shape."""
    if p.type == "int64_t *" and not p.constant and p.name == "offset" and rest and rest[0].name == "extent":
        c.keep("integer(c_int64_t), target", "first_c(TRAMA_MAX_NDIM), extent_c(TRAMA_MAX_NDIM)")
        c.keep("type(trama_shape)", "whole")
        whole = "shape_of(int(extents, c_int64_t))" if "extents" in c.arguments else f"raw_value_shape({c.values[-1]}%at)"
        c.before += ["first_c = 0", "extent_c = 0", f"whole = {whole}"]
        c.after += ["first = reversed(whole%ndim, first_c) + 1", "extent = reversed(whole%ndim, extent_c)"]
        for name in ("first", "extent"):
            c.arguments.append(name)
            c.declared.append(f"integer(c_int64_t), allocatable, intent(out) :: {name}(:)")
            c.actual.append(f"c_loc({name}_c)")
        return 2


def part(c, p, rest):
    """const int64_t *offset [ndim of the value]: where a part begins, from 1."""
    if p.type == "int64_t *" and p.constant and p.name == "offset" and c.values:
        c.keep("integer(c_int64_t), target", "offset_c(TRAMA_MAX_NDIM)")
        c.before.append(f"offset_c = offset_of(raw_value_shape({c.values[0]}%at), int(first, c_int64_t))")
        c.take("first", "integer({kind}), intent(in)", "c_loc(offset_c)")
        c.declared[-1] += "(:)"
        c.wide = True
        return 1


def start_values(c, p, rest):
    """const trama_init *init: uniform in [low, high); high defaults to low, and low to 0."""
    if p.type == "trama_init *":
        for name, kind in (("low", "real(c_double)"), ("high", "real(c_double)"), ("seed", "integer({kind})"),
                           ("stream", "integer({kind})")):
            c.arguments.append(name)
            c.declared.append(f"{kind}, intent(in), optional :: {name}")
        c.keep("type(trama_init), target", "init")
        c.before += ["if (present(low)) init%low = low", "init%high = init%low", "if (present(high)) init%high = high",
                     "if (present(seed)) init%seed = seed", "if (present(stream)) init%stream = stream"]
        c.actual.append("c_loc(init)")
        c.wide = True
        return 1


def shape(c, p, rest):
    if p.type == "trama_shape":
        name = "extents" if p.name == "shape" else p.name
        c.take(name, "integer({kind}), intent(in)", f"shape_of(int({name}, c_int64_t))")
        c.declared[-1] += "(:)"
        c.wide = True
        return 1
    if p.type == "trama_shape *" and not p.constant:
        c.keep("type(trama_shape), target", "shape_c")
        c.take("extents", "integer(c_int64_t), allocatable, intent(out)", "c_loc(shape_c)")
        c.declared[-1] += "(:)"
        c.after.append("extents = extents_of(shape_c)")
        return 1


def dim(c, p, rest):
    if p.type == "int" and p.name == "dim" and c.values:
        listed_dims(c)
        c.before.append(f'call set_dims("{c.function.friendly}", of, dims_c, n, dim)')
        c.take("dim", "integer, intent(in)", "dims_c(1)")
        return 1


def handle(c, p, rest):
    for stars in (" *", " **"):
        if p.type.endswith(stars) and p.type.removesuffix(stars) in c.headers.handles:
            kind = p.type.removesuffix(stars)
            if kind == "trama_value":
                c.values.append(p.name)
            c.take(p.name, f"type({kind}), intent({'in' if stars == ' *' else 'inout'})" + ", target" * (stars == " **"),
                   f"{p.name}%at" if stars == " *" else f"c_loc({p.name}%at)")
            return 1


def text(c, p, rest):
    if p.type == "char *" and p.constant:
        c.keep("character(kind=c_char), target", f"{p.name}_c(len_trim({p.name}) + 1)")
        c.before.append(f"{p.name}_c = for_c({p.name})")
        c.take(p.name, "character(*), intent(in)", f"c_loc({p.name}_c)")
        return 1
    if p.type == "char **" and not p.is_list:
        c.keep("type(c_ptr), target", f"{p.name}_c")
        c.before.append(f"{p.name}_c = c_null_ptr")
        c.take(p.name, "character(:), allocatable, intent(out)", f"c_loc({p.name}_c)")
        c.after.append(f"if (c_associated({p.name}_c)) {p.name} = {'text_of' if p.constant else 'taken'}({p.name}_c)")
        return 1


def scalar(c, p, rest):
    declared = "integer({kind})" if p.type in WIDE else "logical" if p.type == "bool" else \
        "integer" if p.type in ("int", "unsigned", "uint32_t") or c.headers.is_enum(p.type) else \
        "real(c_double)" if p.type == "double" else ""
    if not declared:
        return None
    kind = re.search(r"\((\w+)\)", c.headers.fortran(p.type)[0])[1]
    c.wide = c.wide or p.type in WIDE
    if p.type == "bool" and not rest:
        c.take(p.name, "logical, intent(in), optional", f"chosen({p.name})")
    elif p.type == "bool":
        c.take(p.name, "logical, intent(in)", f"logical({p.name}, c_bool)")
    elif p.type == "double":
        c.take(p.name, "real(c_double), intent(in)", p.name)
    else:
        less = " - 1" if p.name in FROM_ONE else ""
        c.take(p.name, declared + ", intent(in)", f"int({p.name}{less}, {kind})")
    return 1


def result(c, p, rest):
    """int *n, bool *known: one number."""
    pointed = p.type.removesuffix(" *")
    if p.constant or not p.type.endswith(" *") or not (pointed in fortran_headers.NUMBERS or c.headers.is_enum(pointed)):
        return None
    kind, zero = c.headers.fortran(pointed)
    c.keep(f"{kind}, target", f"{p.name}_c")
    c.before.append(f"{p.name}_c = {zero}")
    shown = "logical" if pointed == "bool" else "integer" if kind == "integer(c_int)" else kind
    c.take(p.name, f"{shown}, intent(out), optional", f"c_loc({p.name}_c)")
    c.after.append(f"if (present({p.name})) {p.name} = {p.name}_c")
    return 1


def struct(c, p, rest):
    pointed = p.type.removesuffix(" *")
    if pointed not in c.headers.structs or p.type.endswith("**") or pointed in ("trama_shape", "trama_host_box"):
        return None
    if p.type == pointed:
        c.take(p.name, f"type({pointed}), intent(in)", p.name)
    else:
        c.take(p.name, f"type({pointed}), intent({'in' if p.constant else 'inout'}), target", f"c_loc({p.name})")
    return 1


def callback(c, p, rest):
    if p.type in c.headers.callbacks:
        c.take(p.name, "type(c_funptr), intent(in)", p.name)
        return 1


def pointer(c, p, rest):
    if p.type == "void *":
        c.take(p.name, "type(c_ptr), intent(in)", p.name)
        return 1


RULES = (place, reduction, dims, handles, numbers, texts, array, box, part, start_values, shape, dim, handle, text, scalar,
         result, struct, callback, pointer)


def answer(c):
    """The declaration of the result, and the statement that sets it."""
    kind, call = c.function.result, f"{c.function.raw}({', '.join(c.actual)})"
    handle_of = kind.removesuffix(" *")
    if kind == "void":
        return None, f"call {call}"
    if handle_of != kind and handle_of in c.headers.handles:
        return f"type({handle_of})", f"answer%at = {call}"
    if kind.endswith("char *"):
        return "character(:), allocatable", f"answer = {'text_of' if 'const' in kind else 'taken'}({call})"
    if kind == "trama_shape":
        return "integer(c_int64_t), allocatable", f"answer = extents_of({call})"
    if kind in c.headers.structs:
        return f"type({kind})", f"answer = {call}"
    if kind in ("int", "bool") or c.headers.is_enum(kind):
        return "logical" if kind == "bool" else "integer", f"answer = {call}"
    if kind in ("int64_t", "size_t", "double"):
        return c.headers.fortran(kind)[0], f"answer = {call}"
    return "unknown", ""


def body(c, name, filled):
    declared, statement = answer(c)
    head = "subroutine" if declared is None else "function"
    lines = [f"{head} {name}({', '.join(c.arguments)})" + (" result(answer)" if declared else "")]
    lines += ["    " + line for line in c.declared + c.local]
    if declared:
        lines.append(f"    {declared} :: answer" + ("(:)" if c.function.result == "trama_shape" else ""))
    if c.array and declared == "integer":
        statement = f"answer = {c.array}\n    if (answer == TRAMA_OK) {statement}"
    elif c.array:
        statement = f"if ({c.array} == TRAMA_OK) {statement}"
    lines += ["    " + line for line in [*c.before, statement, *c.after]] + [f"end {head} {name}"]
    return "\n".join(lines).format(**filled).split("\n")


def made_of(headers, f):
    c = Call(headers, f, name=f.friendly)
    rest = list(f.parameters)
    while rest:
        taken = next(filter(None, (rule(c, rest[0], rest[1:]) for rule in RULES)), 0)
        if not taken:
            return None
        rest = rest[taken:]
    return finished(c)


def finished(c):
    if answer(c)[0] == "unknown":
        return None
    if c.wide:
        c.variants = [("_i4", {"kind": "c_int32_t"}), ("_i8", {"kind": "c_int64_t"})]
    for suffix, filled in c.variants:
        c.names.append(c.name.removeprefix("trama_") + suffix if suffix else c.name)
        c.bodies.append(body(c, c.names[-1], filled))
    return c


def fixed(c_type, given):
    """The Fortran text of an argument that a macro fixes; None where no rule fits."""
    if given == "TRAMA_SCALAR":
        return "shape_of([integer(c_int64_t) ::])"
    if c_type == "double" and re.fullmatch(r"-?[\d.]+", given):
        return f"{float(given)}_c_double"
    if c_type == "double" and (negative := re.fullmatch(r"-\((\w+)\)", given)):
        return f"-{negative[1]}"


def made_of_macro(headers, name, parameters, text):
    """A macro that is a function with some arguments fixed, as trama_add_scalar(x, number) is
    trama_affine_at(TRAMA_HERE, x, 1, number)."""
    match = re.fullmatch(r"(trama_\w+_at)\(TRAMA_HERE, (.*)\)", text)
    f = next((f for f in headers.functions if match and f.name == match[1]), None)
    given = fortran_headers.split(match[2]) if f else []
    if not f or name == f.friendly or len(given) != len(f.parameters) - 1 or \
            not set(re.findall(r"\b[a-z]\w*", " ".join(given))) <= set(parameters):
        return None
    c = Call(headers, f, name=name)
    place(c, f.parameters[0], [])
    constant = {}
    for p, argument in zip(f.parameters[1:], given):
        if argument in parameters:
            renamed = fortran_headers.Declared(p.type, argument, p.constant, p.extent, p.is_list)
            if not next(filter(None, (rule(c, renamed, []) for rule in RULES)), 0):
                return None
            continue
        constant[argument] = fixed(p.type, argument)
        c.actual.append(constant[argument])
        if negative := re.fullmatch(r"-\((\w+)\)", argument):
            c.arguments.append(negative[1])
            c.declared.append(f"real(c_double), intent(in) :: {negative[1]}")
    if None in constant.values() or (not constant and c.arguments == parameters):
        return None
    c.arguments = parameters
    return finished(c)
