/* Names of secrets; see secrets.h. */

#include "record/secrets.h"

#include <regex.h>

#include "record/stats.h"
#include "record/text.h"

static regex_t redact;
static bool has_redact;

/* Answers for recent names, by address and hash: the same keys come again and again. */
static struct {
    PyObject *name; /* for comparison only */
    Py_hash_t hash;
    bool secret;
} secrets[256];

int secrets_configure(const char *pattern)
{
    char message[200];
    if (has_redact)
        regfree(&redact);
    has_redact = false;
    memset(secrets, 0, sizeof secrets);
    if (pattern == NULL)
        return 0;
    if (regcomp(&redact, pattern, REG_EXTENDED | REG_ICASE | REG_NOSUB)) {
        PyErr_Format(PyExc_ValueError, "%s", secrets_check_pattern(pattern, message, sizeof message));
        return -1;
    }
    has_redact = true;
    return 0;
}

const char *secrets_check_pattern(const char *pattern, char *message, size_t size)
{
    regex_t compiled;
    int error = regcomp(&compiled, pattern, REG_EXTENDED | REG_ICASE | REG_NOSUB);
    if (error == 0) {
        regfree(&compiled);
        return NULL;
    }
    regerror(error, &compiled, message, size);
    return message;
}

/* Matches a str or bytes with the expression; no method of a program's class is called. */
static bool looks_secret(PyObject *name)
{
    STAT(name_judged);
    char text[256];
    size_t size;
    if (PyUnicode_Check(name)) {
        size = text_of(text, sizeof text - 1, name);
    } else {
        size = (size_t)PyBytes_GET_SIZE(name) < sizeof text - 1 ? (size_t)PyBytes_GET_SIZE(name) : sizeof text - 1;
        memcpy(text, PyBytes_AS_STRING(name), size);
    }
    for (char *nul; (nul = memchr(text, 0, size)) != NULL;)
        *nul = ' '; /* the name goes on behind it */
    text[size] = 0;
    return regexec(&redact, text, 0, NULL, 0) == 0;
}

bool secrets_match(PyObject *name)
{
    if (!has_redact)
        return false;
    /* a subclass may have a __hash__ of its own */
    if (!PyUnicode_CheckExact(name) && !PyBytes_CheckExact(name))
        return (PyUnicode_Check(name) || PyBytes_Check(name)) && looks_secret(name);
    Py_hash_t hash = PyObject_Hash(name);
    size_t at = (size_t)hash % (sizeof secrets / sizeof *secrets);
    if (secrets[at].name == name && secrets[at].hash == hash)
        return secrets[at].secret;
    secrets[at].name = name;
    secrets[at].hash = hash;
    return secrets[at].secret = looks_secret(name);
}
