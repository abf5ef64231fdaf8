/* The rest of a predicate; see predicate_rest in predicate.h. */
#include "query/predicate_tree.h"

#include <stdlib.h>

void predicate_rest_free(const struct predicate *rest)
{
    if (!rest || !rest->is_rest)
        return;
    for (size_t i = 0; i < rest->members.count; i++)
        predicate_rest_free(rest->members.all[i]);
    free(rest->members.all);
    free((void *)(uintptr_t)rest);
}

/* The rest of a group, by the rests of its members: the group itself if no member has gone. It
 * takes over the rests, even if it returns NULL (no memory). */
static const struct predicate *rest_group(const struct predicate *group, const struct predicate *const *rests,
                                          size_t count)
{
    size_t same = 0;
    while (same < count && rests[same] == group->members.all[same])
        same++;
    if (same == group->members.count)
        return group;

    struct predicate *made = predicate_make(group->op, FIELD_ID);
    struct predicate **all = malloc((count ? count : 1) * sizeof *all);
    bool whole = made && all;
    for (size_t i = 0; i < count; i++)
        whole = whole && rests[i];
    if (!whole) {
        for (size_t i = 0; i < count; i++)
            predicate_rest_free(rests[i]);
        free(all);
        free(made);
        return NULL;
    }
    if (count)
        memcpy(all, rests, count * sizeof *all);
    made->is_rest = true;
    made->members = (struct members){all, count};
    return made;
}

static enum answer reduce(const struct predicate *predicate, const struct facts *facts, bool in_any,
                          const struct predicate **rest);

/* AND and OR. */
static enum answer reduce_members(const struct predicate *group, const struct facts *facts, bool in_any,
                                  const struct predicate **rest)
{
    enum answer decides = group->op == OP_AND ? NEVER : ALWAYS, answer = not(decides);
    const struct predicate **rests = malloc((group->members.count + 1) * sizeof *rests);
    size_t count = 0;

    *rest = NULL;
    if (!rests)
        return MAYBE;
    for (size_t i = 0; i < group->members.count && answer != decides; i++) {
        enum answer one = reduce(group->members.all[i], facts, in_any, &rests[count]);
        if (one != not(decides))
            answer = one;
        count += one == MAYBE;
    }
    if (answer != MAYBE)
        for (size_t i = 0; i < count; i++)
            predicate_rest_free(rests[i]);
    else
        *rest = count == 1 ? rests[0] : rest_group(group, rests, count);
    free(rests);
    return answer;
}

/* Answers as `ask` does. If the answer is MAYBE, *rest is the rest, which the caller frees (NULL:
 * no memory). in_any: the question is about each argument that the events may have. */
static enum answer reduce(const struct predicate *predicate, const struct facts *facts, bool in_any,
                          const struct predicate **rest)
{
    enum answer answer;

    switch (predicate->op) {
    case OP_AND:
    case OP_OR:
        return reduce_members(predicate, facts, in_any, rest);
    case OP_NOT:
        answer = reduce(predicate->members.all[0], facts, in_any, rest);
        if (answer == MAYBE)
            *rest = rest_group(predicate, rest, 1);
        return not(answer);
    case OP_ANY:
        if (predicate_ask_any(predicate->members.all[0], facts) == NEVER)
            return NEVER;
        answer = reduce(predicate->members.all[0], facts, true, rest);
        if (answer == ALWAYS) /* if it has one */
            *rest = predicate;
        else if (answer == MAYBE)
            *rest = rest_group(predicate, rest, 1);
        return answer == NEVER ? NEVER : MAYBE;
    default:
        *rest = predicate;
        return in_any && is_of_argument(predicate->field) ? predicate_any_by_name(predicate, facts)
                                                          : predicate_ask(predicate, facts);
    }
}

const struct predicate *predicate_rest(const struct predicate *predicate, const struct facts *facts)
{
    static const struct predicate always = {.op = OP_AND}, never = {.op = OP_OR};
    const struct predicate *rest;
    enum answer answer = reduce(predicate, facts, false, &rest);
    return answer == MAYBE ? rest : answer == ALWAYS ? &always : &never;
}
