/* Format files and pages of the kernel's ring buffer, of arbitrary bytes. The input: a byte for the
 * length of the format file in 16 bytes, that file, and the rest is a page. What must hold, besides
 * touching nothing that is not theirs: what is found lies in the page.
 */
#include "fuzz.h"

#include "kernel/format.h"
#include "kernel/pages.h"

static void read_fields(const struct kernel_format *format, const struct kernel_event *event)
{
    for (uint32_t i = 0; i < format->field_count; i++) {
        const uint8_t *bytes;
        size_t length;
        int64_t number;
        CHECK(memchr(format->fields[i].name, 0, KERNEL_NAME_MAX));
        if (kernel_field_bytes(&format->fields[i], event->data, event->size, &bytes, &length))
            CHECK(bytes >= event->data && length <= event->size &&
                  bytes + length <= event->data + event->size);
        kernel_field_number(&format->fields[i], event->data, event->size, &number);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kernel_layout layout = {.commit_offset = 8, .commit_size = 8, .data_offset = 16, .page_size = 4096};
    struct kernel_format format;
    struct kernel_page page;
    struct kernel_event event;
    size_t text = size ? (size_t)data[0] * 16 : 0;

    if (!size--)
        return 0;
    data++;
    text = text < size ? text : size;
    bool known = kernel_format_parse((const char *)data, text, &format);
    struct kernel_layout other;
    if (kernel_layout_parse((const char *)data, text, &other))
        layout = other;
    data += text;
    size -= text;
    if (!kernel_page_open(&page, &layout, data, size))
        return 0;
    while (kernel_page_next(&page, &event) > 0) {
        CHECK(event.data >= data && event.data + event.size <= data + size);
        if (known)
            read_fields(&format, &event);
    }
    return 0;
}
