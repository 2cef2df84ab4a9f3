/* SPDX-License-Identifier: Apache-2.0 */
/* The language of rules: reading, and the checks of users' rules before their use. Rules of ops.def are not checked. */
#include "rule_text.h"

#include <ctype.h>
#include <string.h>

#include "rule.h"

/* ---- Reading ---- */

size_t rule_part(const char *string)
{
    return strcspn(string, ",-");
}

bool rule_has_dots(const char *part, size_t n)
{
    return n >= 3 && memcmp(part, "...", 3) == 0;
}

static int64_t read_number(const char **at, const char *end)
{
    int64_t number = 0;
    while (*at < end && isdigit((unsigned char)**at))
        number = 10 * number + (*(*at)++ - '0');
    return number;
}

bool rule_next_dim(const char **at, const char *end, rule_dim_text *dim)
{
    for (; *at < end && !isalpha((unsigned char)**at); ++*at)
        if (**at == '[' || **at == ']')
            dim->whole = **at == '[';
    if (*at == end)
        return false;
    dim->letter = *(*at)++;
    dim->extent = TRAMA_ANY;
    dim->before = dim->after = dim->stride = 0;
    dim->wraps = false;
    if (*at < end && **at == '=') {
        ++*at;
        dim->extent = read_number(at, end);
    }
    if (*at < end && **at == '{') {
        ++*at;
        dim->before = read_number(at, end);
        ++*at; /* ":" */
        dim->after = read_number(at, end);
        if (**at == '*') {
            ++*at;
            dim->stride = read_number(at, end);
        }
        dim->wraps = **at == '~';
        *at += dim->wraps ? 2 : 1; /* "}" */
    }
    return true;
}

bool rule_mark(const char *word, size_t n, unsigned *set)
{
    static const struct {
        const char *name;
        unsigned set;
    } words[] = {{"linear", PASS_LINEAR},   {"joint", 1u << TRAMA_AVG | PASS_JOINT},
                 {"rising", PASS_MONOTONE}, {"falling", PASS_MONOTONE | PASS_FALLING},
                 {"any", PASS_ANY},         {"max", 1u << TRAMA_MAX},
                 {"min", 1u << TRAMA_MIN},  {"-", 0}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i].name) == n && !memcmp(words[i].name, word, n)) {
            *set = words[i].set;
            return true;
        }
    return false;
}

/* ---- Checking ---- */

enum { MOST_DIGITS = 15 };

typedef struct check {
    text *why;
    bool letters[128], dots; /* that operands have */
    bool reached[128];       /* letters of which neighbours are read */
} check;

static bool refuse(check *c, const char *string, const char *at, const char *problem)
{
    if (*at)
        text_add(c->why, "\"%s\" is no rule: at \"%.12s\" %s", string, at, problem);
    else
        text_add(c->why, "\"%s\" is no rule: at the end %s", string, problem);
    return false;
}

/* Checks the rest of "{1:2": a stride "*2", or "~" for a dim that wraps around. */
static const char *check_stride(const char *at, const char **problem)
{
    if (*at != '*')
        return at + (*at == '~');
    size_t digits = strspn(++at, "0123456789");
    if (!digits || digits > MOST_DIGITS || strspn(at, "0") == digits)
        *problem = "\"*\" wants a stride of at least 1, as in i{1:1*2}";
    else if (at[digits] == '~')
        *problem = "a dim that is read with a stride does not go on at its other end";
    return at + digits;
}

/* Checks the neighbours of an operand: "{1:2}", "{1:2*3}" or "{1:2~}". */
static const char *check_reach(check *c, const char *at, unsigned char letter, bool result, bool within,
                               const char **problem)
{
    for (int i = 0; i < 2; i++) {
        size_t digits = strspn(++at, "0123456789");
        at += digits;
        if (!digits || digits > MOST_DIGITS || (i == 0 && *at != ':'))
            *problem = "\"{\" wants numbers of neighbours before and after, as in i{1:1}";
        if (*problem)
            return at;
    }
    at = check_stride(at, problem);
    if (*problem)
        return at;
    if (*at != '}')
        *problem = "a brace is not closed";
    else if (result)
        *problem = "a result has no neighbours that are read";
    else if (within)
        *problem = "a dim in brackets is never split: all of it is there";
    c->reached[letter] = true;
    return at + (*at == '}');
}

/* Checks a letter and its extent. *problem stays NULL without an error. */
static const char *check_dim(check *c, const char *at, bool result, bool within, bool *seen, const char **problem)
{
    unsigned char letter = (unsigned char)*at;
    const char *next = at + 1;
    if (seen[letter])
        *problem = "a letter stands twice in one tensor, which cannot be split";
    seen[letter] = true;
    if (*next == '=') {
        size_t digits = strspn(++next, "0123456789");
        if (!digits || digits > MOST_DIGITS)
            *problem = "\"=\" wants an extent, as in k=3";
        next += digits;
    } else if (result && !c->letters[letter]) {
        *problem = "a letter that no operand has wants its extent, as in k=3";
    }
    if (!result)
        c->letters[letter] = true;
    if (*next == '{' && !*problem)
        next = check_reach(c, next, letter, result, within, problem);
    return next;
}

static bool check_part(check *c, const char *string, const char *part, size_t n, bool result)
{
    const char *at = part, *end = part + n, *problem = NULL;
    bool seen[128] = {0}, within = false;
    int letters = 0;
    if (rule_has_dots(part, n)) {
        at += 3;
        if (!result)
            c->dots = true;
        else if (!c->dots)
            return refuse(c, string, part, "\"...\" stands in a result and in no operand");
    }
    while (at < end && !problem) {
        const char *here = at;
        if (*at > 0 && isalpha((unsigned char)*at)) {
            at = check_dim(c, at, result, within, seen, &problem);
            letters++;
        } else if (*at == '[' || *at == ']') {
            if (within != (*at == ']'))
                problem = "brackets do not pair";
            within = *at++ == '[';
        } else {
            problem = *at == '.' ? "\"...\" only stands first" : "a letter, \"[\", \"]\", \",\" or \"->\" is expected";
        }
        if (letters > TRAMA_MAX_NDIM)
            problem = "a tensor has more than 8 dims";
        if (problem)
            return refuse(c, string, here, problem);
    }
    for (int i = 0; result && i < 128; i++)
        if (c->reached[i] && !seen[i])
            return refuse(c, string, end, "a dim of which neighbours are read is in every result");
    return within ? refuse(c, string, end, "a bracket is not closed") : true;
}

static bool check_parts(check *c, const char *string, const char **at, int n, bool result)
{
    int seen = 0;
    for (;; ++*at) {
        size_t length = rule_part(*at);
        if (!check_part(c, string, *at, length, result))
            return false;
        *at += length;
        seen++;
        if (**at != ',')
            break;
    }
    if (seen == n)
        return true;
    text_add(c->why, "\"%s\" has %d %s, the op has %d", string, seen, result ? "results" : "operands", n);
    return false;
}

bool rule_check(const char *string, int n_in, int n_out, text *why)
{
    check c = {.why = why};
    const char *at = string;
    if (!check_parts(&c, string, &at, n_in, false))
        return false;
    if (strncmp(at, "->", 2) != 0)
        return refuse(&c, string, at, "\"->\" and the results are expected");
    at += 2;
    if (!check_parts(&c, string, &at, n_out, true))
        return false;
    int letters = 0;
    for (int i = 0; i < 128; i++)
        letters += c.letters[i];
    _Static_assert(RULE_MAX_FACTORS == 24, "as the message has it");
    if (letters > RULE_MAX_FACTORS)
        return refuse(&c, string, string, "there are more than 24 letters");
    return *at ? refuse(&c, string, at, "nothing more is expected") : true;
}

bool rule_check_marks(const char *marks, int n_in, text *why)
{
    int operands = 0;
    for (const char *at = marks;; at++) {
        size_t n = strcspn(at, ",+");
        unsigned set;
        if (!rule_mark(at, n, &set)) {
            text_add(why,
                     "\"%s\" are no partial marks: \"%.*s\" is none of linear, joint, rising, falling, any, max, min "
                     "and -",
                     marks, (int)n, at);
            return false;
        }
        at += n;
        operands += *at != '+';
        if (!*at)
            break;
    }
    if (operands == n_in)
        return true;
    text_add(why, "the partial marks \"%s\" are for %d operands, the op has %d", marks, operands, n_in);
    return false;
}

unsigned rule_reaching(const char *string)
{
    unsigned set = 0;
    for (int i = 0; *string; i++) {
        size_t n = rule_part(string);
        set |= memchr(string, '{', n) ? 1u << i : 0;
        string += n + (string[n] == ',');
        if (*string == '-')
            break;
    }
    return set;
}

bool rule_is_pointwise(const char *string)
{
    bool result = false;
    for (const char *at = string;;) {
        size_t n = rule_part(at);
        bool dots = n == 3 && rule_has_dots(at, n);
        if (!dots && (n || result))
            return false;
        at += n;
        if (!*at)
            return result;
        result |= *at == '-';
        at += *at == '-' ? 2 : 1;
    }
}
