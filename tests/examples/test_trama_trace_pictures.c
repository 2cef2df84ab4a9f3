/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of traces made by hand, read back strictly: places, times, what goes with what, and ragged traces. */
#include <math.h>

#include "../../examples/trama/trace/pictures/pictures.h"
#include "programs.h"
#include "strict.h"
#include "trace_models.h"

/* ---- Output ---- */

/* The caller frees. */
static char *svg_of(const model *m, long first, long last)
{
    char *text;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    ck_assert(trace_write_svg(&m->t, &(trace_picture){first, last}, out));
    fclose(out);
    return text;
}

static char *chrome_of(const model *m)
{
    char *text;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    ck_assert(trace_write_chrome(&m->t, out));
    fclose(out);
    return text;
}

/* The parent of the title that has this part; -1 where there is none. */
static int titled(const strict *s, const char *part)
{
    for (int i = 0; i < s->n; i++)
        if (xml_is(s, i, "title") && xml_holds(s, i, part))
            return s->nodes[i].parent;
    return -1;
}

static int plot_of(const strict *s)
{
    for (int i = 0; i < s->n; i++) {
        const char *id = xml_attribute(s, i, "id");
        if (id && !strncmp(id, "plot\"", 5))
            return i;
    }
    ck_abort_msg("no plot");
    return -1;
}

/* Elements of the name within the group of the class. */
static int count_in(const strict *s, const char *class, const char *name)
{
    int n = 0;
    for (int i = 0; i < s->n; i++) {
        const char *of = s->nodes[i].parent < 0 ? NULL : xml_attribute(s, s->nodes[i].parent, "class");
        n += of && !strncmp(of, class, strlen(class)) && of[strlen(class)] == '"' && xml_is(s, i, name);
    }
    return n;
}

static int events_of(const strict *s)
{
    int events = json_field(s, 0, "traceEvents");
    ck_assert(events > 0 && s->nodes[events].kind == '[');
    return events;
}

/* The next event of the phase after i; -1 where there is none. */
static int next_event(const strict *s, int events, int i, const char *phase)
{
    for (i = i < 0 ? events + 1 : i + 1; i < s->n; i++)
        if (s->nodes[i].parent == events && json_has(s, i, "ph", phase))
            return i;
    return -1;
}

/* ---- Trace events ---- */

static int slice_of_task(const strict *s, int events, long job)
{
    for (int i = -1; (i = next_event(s, events, i, "X")) >= 0;) {
        int arguments = json_field(s, i, "args");
        if (json_field(s, arguments, "task") >= 0 && (long)json_double(s, arguments, "task") == job)
            return i;
    }
    return -1;
}

static void read_free(strict *s, char *text, model *m)
{
    free(s->nodes);
    free(text);
    model_free(m);
}

START_TEST(each_task_is_a_slice_of_its_worker)
{
    model m = two_by_two();
    char *text = chrome_of(&m);
    strict s = json_parse(text);
    int events = events_of(&s);
    for (int i = 0; i < m.t.n_tasks; i++) {
        const trace_task *task = &m.t.tasks[i];
        int slice = slice_of_task(&s, events, task->job);
        ck_assert(slice >= 0 && json_has(&s, slice, "name", m.t.names[task->name].text));
        ck_assert_double_eq(json_double(&s, slice, "pid"), task->rank + 1);
        ck_assert_double_eq(json_double(&s, slice, "tid"), m.t.workers[task->worker].number + 1);
        /* to the ns */
        ck_assert_double_eq_tol(json_double(&s, slice, "ts"), task->began * 1000, 6e-4);
        ck_assert_double_eq_tol(json_double(&s, slice, "dur"), (task->ended - task->began) * 1000, 1.1e-3);
        int arguments = json_field(&s, slice, "args");
        ck_assert_double_eq(json_double(&s, arguments, "step"), (double)task->step);
        ck_assert_double_eq(json_double(&s, arguments, "priority"), 3);
        ck_assert_double_eq(json_double(&s, arguments, "gflop"), 0.5);
        ck_assert_int_eq(json_field(&s, arguments, "micro_step") >= 0, task->micro_step >= 0);
    }
    ck_assert(contains(text, "\"waited_for\":[\"w1 from rank 0\",\"matmul.grad, task 102\"]"));
    read_free(&s, text, &m);
}
END_TEST

START_TEST(ranks_and_workers_have_names_and_steps_have_spans)
{
    model m = two_by_two();
    char *text = chrome_of(&m);
    strict s = json_parse(text);
    int events = events_of(&s), named = 0, steps = 0, threads = 0;
    for (int i = -1; (i = next_event(&s, events, i, "M")) >= 0;) {
        int arguments = json_field(&s, i, "args");
        char rank[40];
        snprintf(rank, sizeof rank, "rank %d", (int)json_double(&s, i, "pid") - 1);
        named += json_has(&s, i, "name", "process_name") && json_has(&s, arguments, "name", rank);
        threads += json_has(&s, i, "name", "thread_name") &&
                   (json_has(&s, arguments, "name", "worker 0") || json_has(&s, arguments, "name", "worker 1") ||
                    json_has(&s, arguments, "name", "messages"));
    }
    ck_assert_int_eq(named, 2);
    ck_assert_int_eq(threads, 6);
    for (int i = -1; (i = next_event(&s, events, i, "X")) >= 0;)
        if (json_has(&s, i, "name", "step 4") || json_has(&s, i, "name", "step 5")) {
            bool first = json_has(&s, i, "name", "step 4");
            ck_assert_double_eq_tol(json_double(&s, i, "ts"), first ? 1000 : 3750, 1e-6);
            ck_assert_double_eq_tol(json_double(&s, i, "dur"), first ? 2500 : 5250, 1e-6);
            steps++;
        }
    ck_assert_int_eq(steps, 2);
    read_free(&s, text, &m);
}
END_TEST

static int64_t ns_of(const strict *s, int event, const char *key)
{
    return llround(json_double(s, event, key) * 1000);
}

/* A slice of the thread of the event that holds its time: the half-open span of ns. */
static int slice_around(const strict *s, int events, int event)
{
    int64_t at = ns_of(s, event, "ts");
    for (int i = -1; (i = next_event(s, events, i, "X")) >= 0;) {
        int64_t begin = ns_of(s, i, "ts");
        if (json_double(s, i, "pid") == json_double(s, event, "pid") &&
            json_double(s, i, "tid") == json_double(s, event, "tid") && begin <= at && at < begin + ns_of(s, i, "dur"))
            return i;
    }
    return -1;
}

/* name: of the flow, from and to: of the slices that it binds. */
static int count_flows(const strict *s, const char *name, const char *from, const char *to)
{
    int events = events_of(s), n = 0;
    for (int i = -1; (i = next_event(s, events, i, "s")) >= 0;) {
        int partners = 0, end = -1;
        for (int j = -1; (j = next_event(s, events, j, "f")) >= 0;)
            if (json_double(s, i, "id") == json_double(s, j, "id")) {
                partners++;
                end = j;
            }
        ck_assert_int_eq(partners, 1);
        ck_assert(ns_of(s, i, "ts") <= ns_of(s, end, "ts") && json_has(s, end, "bp", "e"));
        int left = slice_around(s, events, i), right = slice_around(s, events, end);
        ck_assert_msg(left >= 0 && right >= 0, "flow %d hangs in the air", (int)json_double(s, i, "id"));
        n += json_has(s, i, "name", name) && json_has(s, left, "name", from) && json_has(s, right, "name", to);
    }
    return n;
}

START_TEST(flows_pair_up_and_lead_from_slice_to_slice)
{
    model m = two_by_two();
    char *text = chrome_of(&m);
    strict s = json_parse(text);
    int events = events_of(&s), starts = 0, ends = 0;
    for (int i = -1; (i = next_event(&s, events, i, "s")) >= 0;)
        starts++;
    for (int i = -1; (i = next_event(&s, events, i, "f")) >= 0;)
        ends++;
    ck_assert_int_eq(starts, 3 + 3 + 3 + 1); /* dependencies; messages, who made them, who waited for one */
    ck_assert_int_eq(ends, starts);
    ck_assert_int_eq(count_flows(&s, "dependency", "matmul.grad", "adam"), 2);
    ck_assert_int_eq(count_flows(&s, "dependency", "matmul", "adam"), 1);
    ck_assert_int_eq(count_flows(&s, "sent", "matmul.grad", "w1 to rank 1"), 2);
    ck_assert_int_eq(count_flows(&s, "message", "w1 to rank 1", "w1 from rank 0"), 2);
    ck_assert_int_eq(count_flows(&s, "message", "w1 to rank 0", "w1 from rank 1"), 1);
    ck_assert_int_eq(count_flows(&s, "received", "w1 from rank 0", "adam"), 1);
    read_free(&s, text, &m);
}
END_TEST

/* The last needs matter most to a reader. */
START_TEST(of_many_needs_the_last_ones_are_shown)
{
    model m = model_new(1, 1, 7, 0, plain_names);
    int needs[] = {2, 0, 5, 1, 4, 3};
    for (int i = 0; i < 7; i++)
        add_task(&m, i == 6 ? 1 : 0, 0, i, i + 1, 0);
    m.t.tasks[6].needs = needs;
    m.t.tasks[6].n_needs = 6;
    char *text = chrome_of(&m), *svg = svg_of(&m, -1, -1);
    strict s = json_parse(text);
    ck_assert_msg(contains(text, "\"waited_for\":[\"matmul, task 105\",\"matmul, task 104\",\"matmul, task 103\","
                                 "\"matmul, task 102\",\"and earlier ones\"]"),
                  "%s", text);
    ck_assert(contains(svg, "waited for matmul, task 105; matmul, task 104; matmul, task 103; matmul, task 102; and "
                            "earlier ones\nthe last of it: matmul, task 105, done "));
    ck_assert_int_eq(count_flows(&s, "dependency", "matmul", "matmul.grad"), 4);
    free(s.nodes);
    free(text);
    free(svg);
    model_free(&m);
}
END_TEST

/* A viewer loses the later one. */
START_TEST(slices_of_a_thread_do_not_overlap)
{
    model m = model_new(2, 1, 40, 40, plain_names);
    for (int i = 0; i < 40; i++) { /* steps and messages do, tasks meet between two ns */
        add_task(&m, i % 3, 0, 1.00000037 * i, 1.00000037 * (i + 1), i / 10 + i % 2);
        add_message(&m, i % 2, 1 - i % 2, i, i + 1 + i % 7, -1);
    }
    char *text = chrome_of(&m);
    strict s = json_parse(text);
    int events = events_of(&s);
    for (int i = -1; (i = next_event(&s, events, i, "X")) >= 0;)
        for (int j = i; (j = next_event(&s, events, j, "X")) >= 0;)
            if (json_double(&s, i, "pid") == json_double(&s, j, "pid") &&
                json_double(&s, i, "tid") == json_double(&s, j, "tid"))
                ck_assert(ns_of(&s, i, "ts") + ns_of(&s, i, "dur") <= ns_of(&s, j, "ts") ||
                          ns_of(&s, j, "ts") + ns_of(&s, j, "dur") <= ns_of(&s, i, "ts"));
    read_free(&s, text, &m);
}
END_TEST

/* ---- The timeline ---- */

START_TEST(each_bar_lies_at_its_time_in_the_row_of_its_worker)
{
    model m = two_by_two();
    char *text = svg_of(&m, -1, -1);
    strict s = xml_parse(text);
    int plot = plot_of(&s), row_y[4] = {0};
    double left = xml_double(&s, plot, "x"), scale = xml_double(&s, plot, "width") / (9.0 - 1.0);
    for (int i = 0; i < m.t.n_tasks; i++) {
        const trace_task *task = &m.t.tasks[i];
        char job[40];
        snprintf(job, sizeof job, ", task %ld\n", task->job);
        int bar = titled(&s, job), y = (int)xml_double(&s, bar, "y");
        ck_assert(bar >= 0 && xml_is(&s, bar, "rect"));
        ck_assert_double_eq_tol(xml_double(&s, bar, "x"), left + (task->began - 1) * scale, 0.01);
        ck_assert_double_eq_tol(xml_double(&s, bar, "width"), (task->ended - task->began) * scale, 0.01);
        ck_assert(!strncmp(xml_attribute(&s, bar, "fill"), m.t.names[task->name].color, 7));
        ck_assert(row_y[task->worker] == 0 || row_y[task->worker] == y);
        row_y[task->worker] = y;
    }
    for (int i = 1; i < 4; i++)
        ck_assert_int_gt(row_y[i], row_y[i - 1]);
    ck_assert_int_eq(count_in(&s, "bars", "rect"), m.t.n_tasks);
    read_free(&s, text, &m);
}
END_TEST

START_TEST(messages_steps_and_shares_are_drawn)
{
    model m = two_by_two();
    char *text = svg_of(&m, -1, -1);
    strict s = xml_parse(text);
    int plot = plot_of(&s);
    double left = xml_double(&s, plot, "x"), scale = xml_double(&s, plot, "width") / 8;
    int bar = titled(&s, "3.600000 to 4.500000 ms"), step = titled(&s, "step 5: 3.750 to 9.000 ms");
    ck_assert(xml_is(&s, bar, "rect") && xml_holds(&s, bar, "w1, 4.00 KiB\nrank 0 to rank 1\n"));
    ck_assert_double_eq_tol(xml_double(&s, bar, "x"), left + 2.6 * scale, 0.01);
    ck_assert_double_eq_tol(xml_double(&s, bar, "width"), 0.9 * scale, 0.01);
    ck_assert_int_eq(count_in(&s, "messages", "rect"), 3);
    ck_assert_int_eq(count_in(&s, "arrows", "line"), 3);
    ck_assert_int_eq(count_in(&s, "step", "rect"), 2);
    ck_assert_double_eq_tol(xml_double(&s, step + 2, "x"), left + 2.75 * scale, 0.01); /* after its title */
    /* workers: 7.75, 1.75, 2.25 and 0.1765433 of 8 ms; matmul: 1 + 1.75 of 32 */
    ck_assert(contains(text, ">97 %</text>") && contains(text, ">22 %</text>") && contains(text, ">28 %</text>") &&
              contains(text, ">2 %</text>"));
    ck_assert(contains(text, "<title>matmul: 2 tasks, 2.750 ms, 8.59 % of the workers' time"));
    ck_assert(contains(text, "the last of it: w1 from rank 0, done 100.0 \u00b5s before"));
    ck_assert(contains(text, "step 5, micro-step 1") && contains(text, "0.5 GFlop at 500 GFlop/s"));
    read_free(&s, text, &m);
}
END_TEST

/* n steps of as many tasks, 1 ms each. */
static model many_steps(int n, int tasks)
{
    model m = model_new(1, 1, n * tasks, 0, plain_names);
    for (int i = 0; i < n * tasks; i++)
        add_task(&m, i % 3, 0, i, i + 0.75, 10 + i / tasks);
    return m;
}

static void expect_steps(const model *m, long first, long last, const char *caption, int bars)
{
    char *text = svg_of(m, first, last);
    strict s = xml_parse(text);
    ck_assert_msg(contains(text, caption), "no '%s' in %.3000s", caption, text);
    ck_assert_int_eq(count_in(&s, "bars", "rect"), bars);
    free(s.nodes);
    free(text);
}

START_TEST(steps_are_whole_and_from_the_middle_unless_they_are_asked_for)
{
    model m = many_steps(100, 20); /* steps 10 to 109; 150 bars go into a row */
    expect_steps(&m, -1, -1, "steps 57 to 63, 7 of 100", 140);
    expect_steps(&m, 30, 31, "steps 30 to 31, 2 of 100", 40);
    expect_steps(&m, 30, 30, "step 30, 1 of 100", 20);
    expect_steps(&m, 0, 10, "step 10, 1 of 100", 20);
    expect_steps(&m, 40, -1, "steps 40 to 46, 7 of 100", 140);
    expect_steps(&m, -1, 40, "steps 34 to 40, 7 of 100", 140);
    expect_steps(&m, 500, 600, "the steps asked for are not in the trace", 140);
    expect_steps(&m, 0, 1000, "steps 10 to 109, 100 of 100", 2000);
    for (int i = 0; i < m.t.n_tasks; i++)
        m.t.tasks[i].step = -1;
    expect_steps(&m, -1, -1, "a part of the run", 150);
    expect_steps(&m, 0, 3, "a part of the run", 150);
    model_free(&m);
    m = many_steps(5, 20);
    expect_steps(&m, -1, -1, "the whole run", 100);
    model_free(&m);
}
END_TEST

/* Each pixel of a row has at most a bar a name, however many tasks there are, and no time is lost. */
START_TEST(a_large_trace_is_a_small_picture)
{
    enum { TASKS = 400000, MESSAGES = 50000 };
    model m = model_new(2, 2, TASKS, MESSAGES, plain_names);
    for (int i = 0; i < TASKS; i++) {
        int at = i / 4;
        add_task(&m, at % 3, i % 4, at * 0.01, at * 0.01 + 0.008, i / (TASKS / 2));
    }
    for (int i = 0; i < MESSAGES; i++)
        add_message(&m, i % 2, 1 - i % 2, i * 0.02, i * 0.02 + i % 30 * 0.02, -1);
    char *text = svg_of(&m, 0, 1);
    strict s = xml_parse(text);
    double plot = xml_double(&s, plot_of(&s), "width"), wide = 0;
    for (int i = 0; i < s.n; i++) {
        const char *of = s.nodes[i].parent < 0 ? NULL : xml_attribute(&s, s.nodes[i].parent, "class");
        wide += of && !strncmp(of, "bars\"", 5) && xml_is(&s, i, "rect") ? xml_double(&s, i, "width") : 0;
    }
    ck_assert_double_eq_tol(wide / plot / 4, 0.8, 0.01);
    ck_assert_int_le(count_in(&s, "bars", "rect"), (int)(4 * 3 * plot));
    ck_assert_int_le(count_in(&s, "messages", "rect"), (int)(2 * 8 * plot));
    ck_assert_int_eq(count_in(&s, "arrows", "line"), 0);
    ck_assert_uint_lt(strlen(text), 6000000);
    free(s.nodes);
    free(text);
    text = svg_of(&m, -1, -1);
    ck_assert_uint_lt(strlen(text), 4000000);
    free(text);
    model_free(&m);
}
END_TEST

/* ---- Ragged traces ---- */

static void expect_both(model *m)
{
    char *svg = svg_of(m, -1, -1), *json = chrome_of(m);
    strict x = xml_parse(svg), j = json_parse(json);
    ck_assert(!contains(svg, "nan") && !contains(svg, "inf") && !contains(json, "nan") && !contains(json, "inf"));
    events_of(&j);
    free(x.nodes);
    free(j.nodes);
    free(svg);
    free(json);
    model_free(m);
}

START_TEST(what_lacks_in_a_trace_lacks_in_the_picture)
{
    model m = model_new(0, 0, 0, 0, plain_names);
    expect_both(&m);
    m = model_new(1, 1, 0, 0, plain_names);
    expect_both(&m);
    m = model_new(2, 2, 1, 0, plain_names); /* three workers without a task; no steps, no messages */
    add_task(&m, 0, 1, 0, 3, -1);
    expect_both(&m);
    m = model_new(1, 1, 1, 0, plain_names); /* no time passes */
    add_task(&m, 0, 0, 0, 0, 0);
    expect_both(&m);
    m = model_new(2, 1, 0, 1, plain_names); /* a message alone */
    add_message(&m, 0, 1, 3, 4, -1);
    expect_both(&m);
    m = model_new(2, 1, 4, 4, plain_names);
    add_task(&m, 0, 0, 1, NAN, 0)->submitted = NAN;
    add_task(&m, 0, 0, 5, 6, 0)->gflop = NAN;
    add_task(&m, 1, 1, NAN, NAN, 0);
    add_task(&m, 1, -1, NAN, NAN, 0);
    add_message(&m, 0, 1, 2, NAN, 0);
    add_message(&m, 1, 0, NAN, 3, 2);
    add_message(&m, 1, 0, NAN, NAN, -1);
    add_message(&m, 1, 1, 1, 2, 1);
    for (int i = 0; i < 4; i++) {
        m.t.tasks[i].needs[m.t.tasks[i].n_needs++] = (i + 1) % 4;
        m.t.tasks[i].messages[m.t.tasks[i].n_messages++] = i;
    }
    expect_both(&m);
}
END_TEST

START_TEST(a_task_without_end_lasts_and_is_told_so)
{
    model m = model_new(1, 2, 2, 0, plain_names);
    add_task(&m, 0, 0, 2, NAN, 0);
    add_task(&m, 1, 1, 0, 8, 0);
    char *text = svg_of(&m, -1, -1), *json = chrome_of(&m);
    strict s = xml_parse(text), j = json_parse(json);
    int plot = plot_of(&s), bar = titled(&s, "task 100\nfrom 2.000000 ms on; its end is not in the trace");
    ck_assert_double_eq_tol(xml_double(&s, bar, "width"), xml_double(&s, plot, "width") * 0.75, 0.01);
    ck_assert(contains(text, "1 task has no end in the trace"));
    ck_assert(contains(text, ">0 %</text>") && contains(text, "step 0: 0.000 to 8.000 ms, 8.000 ms, 2 tasks"));
    int slice = slice_of_task(&j, events_of(&j), 100);
    ck_assert_double_eq(json_double(&j, slice, "dur"), 6000);
    ck_assert(json_has(&j, json_field(&j, slice, "args"), "ended", "not in the trace"));
    free(s.nodes);
    free(j.nodes);
    free(text);
    free(json);
    model_free(&m);
}
END_TEST

START_TEST(any_bytes_are_shown_as_text)
{
    static const char *const names[] = {"a<b>&\"c\"\\", "tab\tend\x01", "\xc3\xa9t\xc3\xa9 \xff\xc3 \xed\xa0\x80", "",
                                        NULL};
    model m = model_new(2, 1, 8, 8, names);
    for (int i = 0; i < 8; i++) {
        add_task(&m, i % 4, i % 2, i, i + 1, 0);
        add_message(&m, 0, 1, i, i + 1, -1);
        m.t.messages[i].text = (char *)(i == 7 ? NULL : names[i % 4]);
    }
    m.t.missing[m.t.n_missing++].text = (char *)"rank 1: <\"cut\"> & gone";
    free(m.t.program);
    m.t.program = strdup("./<p>&\\q");
    char *svg = svg_of(&m, -1, -1), *json = chrome_of(&m);
    ck_assert(contains(svg, "a&#60;b&#62;&#38;&#34;c&#34;\\ (forward)") && contains(svg, "rank 1: &#60;"));
    ck_assert(contains(json, "\"a<b>&\\\"c\\\"\\\\\"") && contains(json, "\"tab end?\"") &&
              contains(json, "\"\xc3\xa9t\xc3\xa9 ?? ???\""));
    ck_assert(contains(json, "\"missing\":[\"rank 1: <\\\"cut\\\"> & gone\"]"));
    free(svg);
    free(json);
    expect_both(&m);
}
END_TEST

START_TEST(a_full_disk_is_told)
{
    model m = two_by_two();
    for (int i = 0; i < 2; i++) {
        FILE *out = fopen("/dev/full", "w");
        ck_assert_ptr_nonnull(out);
        ck_assert(!(i ? trace_write_chrome(&m.t, out) : trace_write_svg(&m.t, NULL, out)));
        fclose(out);
    }
    model_free(&m);
}
END_TEST

TESTS(each_task_is_a_slice_of_its_worker, ranks_and_workers_have_names_and_steps_have_spans,
      flows_pair_up_and_lead_from_slice_to_slice, of_many_needs_the_last_ones_are_shown,
      slices_of_a_thread_do_not_overlap, each_bar_lies_at_its_time_in_the_row_of_its_worker,
      messages_steps_and_shares_are_drawn, steps_are_whole_and_from_the_middle_unless_they_are_asked_for,
      a_large_trace_is_a_small_picture, what_lacks_in_a_trace_lacks_in_the_picture,
      a_task_without_end_lasts_and_is_told_so, any_bytes_are_shown_as_text, a_full_disk_is_told)
