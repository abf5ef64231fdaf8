/* Open functions; see frames.h. */
#include "query/frames.h"

void frames_cut(struct stack *stack, int32_t level)
{
    if (level < stack->floor)
        stack->floor = level;
    while (stack->count && stack->frames[stack->count - 1].level >= level)
        stack->count--;
}

uint32_t frames_entered(const struct stack *stack, int32_t level)
{
    size_t low = 0, high = stack->count;

    if (level < stack->floor)
        return OUTSIDE;
    if (high && stack->frames[high - 1].level == level) /* mostly */
        return stack->frames[high - 1].index;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (stack->frames[middle].level < level)
            low = middle + 1;
        else
            high = middle;
    }
    return low < stack->count && stack->frames[low].level == level ? stack->frames[low].index : UNKNOWN;
}
