/* SPDX-License-Identifier: Apache-2.0 */
/* JSON and XML read strictly: what another reader might refuse fails the test. Knows neither traces nor pictures. */
#ifndef STRICT_H
#define STRICT_H

#include <check.h>
#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A part of a text: a value of JSON, an element of XML. */
typedef struct strict_node {
    char kind;        /* JSON: one of {["0tfn; XML: < */
    int parent;       /* -1: none */
    int key, n_key;   /* JSON: of a field; XML: the element's name; place and length in the text */
    int at, n;        /* JSON: the whole value, without quotes; XML: what stands between its tags */
    int more, n_more; /* XML: the attributes */
} strict_node;

typedef struct strict {
    const char *text;
    int at, n, room;
    strict_node *nodes;
} strict;

/* Check notes each assertion in a file, which is slow for one a byte. */
#define STRICT(s, condition)                                                                                           \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            ck_abort_msg("byte %d: %.60s...: not " #condition, (s)->at, (s)->text + (s)->at);                          \
    } while (0)

static inline int strict_add(strict *s, strict_node node)
{
    if (s->n == s->room) {
        s->room = 2 * s->room + 100;
        s->nodes = realloc(s->nodes, (size_t)s->room * sizeof *s->nodes);
        STRICT(s, s->nodes != NULL);
    }
    s->nodes[s->n] = node;
    return s->n++;
}

/* The C library judges. */
static inline void strict_utf8(const char *text)
{
    ck_assert_ptr_nonnull(setlocale(LC_CTYPE, "C.UTF-8"));
    ck_assert_msg(mbstowcs(NULL, text, 0) != (size_t)-1, "not UTF-8");
    setlocale(LC_CTYPE, "C");
}

/* ---- JSON (RFC 8259) ---- */

static inline void json_space(strict *s)
{
    s->at += (int)strspn(s->text + s->at, " \n\r\t");
}

static inline void json_string(strict *s, int *at, int *n)
{
    STRICT(s, s->text[s->at] == '"');
    *at = ++s->at;
    for (; s->text[s->at] != '"'; s->at++) {
        STRICT(s, (unsigned char)s->text[s->at] >= ' ');
        if (s->text[s->at] == '\\') {
            s->at++;
            STRICT(s, s->text[s->at] && strchr("\"\\/bfnrt", s->text[s->at]));
        }
    }
    *n = s->at++ - *at;
}

static inline void json_digits(strict *s)
{
    int n = (int)strspn(s->text + s->at, "0123456789");
    STRICT(s, n > 0);
    s->at += n;
}

static inline void json_number(strict *s)
{
    s->at += s->text[s->at] == '-';
    STRICT(s, s->text[s->at] != '0' || !strspn(s->text + s->at + 1, "0123456789"));
    json_digits(s);
    if (s->text[s->at] == '.') {
        s->at++;
        json_digits(s);
    }
    if (s->text[s->at] == 'e' || s->text[s->at] == 'E') {
        s->at++;
        s->at += s->text[s->at] == '-' || s->text[s->at] == '+';
        json_digits(s);
    }
}

static inline void json_value(strict *s, int parent, int key, int n_key);

static inline void json_items(strict *s, int parent, bool fields)
{
    char end = fields ? '}' : ']';
    s->at++;
    json_space(s);
    for (bool more = s->text[s->at] != end; more; s->at += more) {
        int key = 0, n_key = 0;
        json_space(s);
        if (fields) {
            json_string(s, &key, &n_key);
            json_space(s);
            STRICT(s, s->text[s->at] == ':');
            s->at++;
        }
        json_value(s, parent, key, n_key);
        more = s->text[s->at] == ',';
    }
    STRICT(s, s->text[s->at] == end);
    s->at++;
}

static inline void json_value(strict *s, int parent, int key, int n_key)
{
    json_space(s);
    char first = s->text[s->at];
    int node = strict_add(s, (strict_node){.kind = first, .parent = parent, .key = key, .n_key = n_key, .at = s->at});
    if (first == '"')
        json_string(s, &s->nodes[node].at, &s->nodes[node].n);
    else {
        if (first == '{' || first == '[')
            json_items(s, node, first == '{');
        else
            json_number(s);
        s->nodes[node].n = s->at - s->nodes[node].at;
    }
    json_space(s);
}

static inline strict json_parse(const char *text)
{
    strict s = {.text = text};
    strict_utf8(text);
    json_value(&s, -1, 0, 0);
    STRICT(&s, s.text[s.at] == 0);
    return s;
}

static inline bool strict_is(const strict *s, int at, int n, const char *text)
{
    return (int)strlen(text) == n && !strncmp(s->text + at, text, (size_t)n);
}

/* The field of an object; -1 where it has none. Fields follow their object. */
static inline int json_field(const strict *s, int object, const char *key)
{
    int end = s->nodes[object].at + s->nodes[object].n;
    for (int i = object + 1; i < s->n && s->nodes[i].at < end; i++)
        if (s->nodes[i].parent == object && strict_is(s, s->nodes[i].key, s->nodes[i].n_key, key))
            return i;
    return -1;
}

static inline double json_double(const strict *s, int object, const char *key)
{
    int field = json_field(s, object, key);
    if (field < 0)
        ck_abort_msg("no %s", key);
    return strtod(s->text + s->nodes[field].at, NULL);
}

/* A string, as it stands in the text. */
static inline bool json_has(const strict *s, int object, const char *key, const char *text)
{
    int field = json_field(s, object, key);
    return field >= 0 && s->nodes[field].kind == '"' && strict_is(s, s->nodes[field].at, s->nodes[field].n, text);
}

/* ---- XML, as far as pictures use it: elements, attributes, text ---- */

static inline void xml_reference(strict *s)
{
    int digits = (int)strspn(s->text + s->at + 2, "0123456789");
    STRICT(s, s->text[s->at + 1] == '#' && digits > 0 && s->text[s->at + 2 + digits] == ';');
    s->at += 2 + digits;
}

/* Up to one of the characters of end. */
static inline void xml_text(strict *s, const char *end)
{
    for (; s->text[s->at] && !strchr(end, s->text[s->at]); s->at++) {
        STRICT(s, (unsigned char)s->text[s->at] >= ' ' || s->text[s->at] == '\n');
        STRICT(s, s->text[s->at] != '<');
        if (s->text[s->at] == '&')
            xml_reference(s);
    }
}

static inline int xml_name(strict *s)
{
    int n = (int)strspn(s->text + s->at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-");
    STRICT(s, n > 0);
    s->at += n;
    return n;
}

static inline void xml_attributes(strict *s, strict_node *node)
{
    node->more = s->at;
    while (s->text[s->at] == ' ') {
        int name = s->at++, n = xml_name(s);
        for (const char *c = s->text + node->more; c < s->text + name; c++)
            STRICT(s, strncmp(c, s->text + name, (size_t)n + 1) || c[n + 1] != '='); /* no attribute twice */
        STRICT(s, s->text[s->at] == '=' && s->text[s->at + 1] == '"');
        s->at += 2;
        xml_text(s, "\"");
        STRICT(s, s->text[s->at] == '"');
        s->at++;
    }
    node->n_more = s->at - node->more;
}

/* Elements one in another, so deep that a loop is clearer than recursion. */
static inline strict xml_parse(const char *text)
{
    strict s = {.text = text};
    int open = -1;
    strict_utf8(text);
    do {
        STRICT(&s, s.text[s.at] == '<');
        bool end = s.text[++s.at] == '/';
        strict_node node = {.kind = '<', .parent = open, .key = s.at += end};
        node.n_key = xml_name(&s);
        if (end) {
            STRICT(&s, open >= 0);
            strict_node *of = &s.nodes[open];
            STRICT(&s, of->n_key == node.n_key && !strncmp(text + of->key, text + node.key, (size_t)node.n_key));
            of->n = node.key - 2 - of->at;
            open = of->parent;
        } else {
            xml_attributes(&s, &node);
            bool empty = s.text[s.at] == '/';
            s.at += empty;
            node.at = s.at + 1;
            int added = strict_add(&s, node);
            open = empty ? open : added;
        }
        STRICT(&s, s.text[s.at] == '>');
        s.at++;
        if (open >= 0)
            xml_text(&s, "<");
    } while (open >= 0);
    s.at += (int)strspn(s.text + s.at, "\n");
    STRICT(&s, s.text[s.at] == 0);
    return s;
}

static inline bool xml_is(const strict *s, int element, const char *name)
{
    return strict_is(s, s->nodes[element].key, s->nodes[element].n_key, name);
}

/* The value of an attribute, up to the text's end; NULL where there is none. */
static inline const char *xml_attribute(const strict *s, int element, const char *name)
{
    const strict_node *node = &s->nodes[element];
    char start[40];
    int n = snprintf(start, sizeof start, " %s=\"", name);
    for (const char *c = s->text + node->more; c < s->text + node->more + node->n_more; c++)
        if (!strncmp(c, start, (size_t)n))
            return c + n;
    return NULL;
}

static inline double xml_double(const strict *s, int element, const char *name)
{
    const char *value = xml_attribute(s, element, name);
    if (!value)
        ck_abort_msg("no %s", name);
    return strtod(value, NULL);
}

/* The content of an element has this part. */
static inline bool xml_holds(const strict *s, int element, const char *part)
{
    const char *text = s->text + s->nodes[element].at, *found = strstr(text, part);
    return found && found + strlen(part) <= text + s->nodes[element].n;
}

#endif
