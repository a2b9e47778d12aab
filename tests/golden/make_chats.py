"""Makes chats.json: chat templates in the styles of common models and what Jinja, set up as Hugging Face sets it up, makes of them.

    pip install jinja2==3.1.6
    python make_chats.py > chats.json

The templates are written for this test; they use what the published ones use (namespaces, slices, tojson, Python's string methods,
whitespace control, generation marks).
"""
import json
import sys

import jinja2
import jinja2.ext
import jinja2.sandbox


class Generation(jinja2.ext.Extension):
    """{% generation %} … {% endgeneration %}: prints its body."""

    tags = {"generation"}

    def parse(self, parser):
        lineno = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.Scope(body, lineno=lineno)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


env = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
env.filters["tojson"] = tojson
env.globals["raise_exception"] = raise_exception

SPECIALS = {"bos_token": "<s>", "eos_token": "</s>"}

TEMPLATES = {
    "chatml": """{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system
You are helpful<|im_end|>
' }}{% endif %}{{'<|im_start|>' + message['role'] + '
' + message['content'] + '<|im_end|>' + '
'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant
' }}{% endif %}""",
    "headers": """{{- bos_token }}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now("%d %b %Y") %}
    {%- else %}
        {%- set date_string = "26 Jul 2024" %}
    {%- endif %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if tools is not none %}
    {{- "Environment: ipython\\n" }}
{%- endif %}
{{- "Today Date: " + date_string + "\\n\\n" }}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '{"name": "' + tool_call.name + '", ' }}
        {{- '"parameters": ' }}
        {{- tool_call.arguments | tojson }}
        {{- "}" }}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
""",
    "instructions": """{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}{% elif message['role'] == 'assistant' %}{{ message['content'] + eos_token}}{% else %}{{ raise_exception('Only user and assistant roles are supported!') }}{% endif %}{% endfor %}""",
    "turns": """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}{% for message in messages %}{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}{{ '<start_of_turn>' + role + '
' + message['content'] | trim + '<end_of_turn>
' }}{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model
'}}{% endif %}""",
    "thinking": """{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning_content = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning_content = message.reasoning_content %}
        {%- else %}
            {%- if '</think>' in content %}
                {%- set reasoning_content = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
                {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index and (loop.last or (not loop.last and reasoning_content)) %}
            {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning_content.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}""",
    "marked": """{% for message in messages %}
{% if message.role == 'assistant' %}
{{ '<a>' }}{% generation %}{{ message.content }}{{ eos_token }}{% endgeneration %}

{% else %}
{{ '<' ~ message.role[0] ~ '>' ~ message.content.strip() }}
{% endif %}
{% endfor %}
{%- if add_generation_prompt %}{{ '<a>' }}{%- endif %}""",
    "methods": """{%- for message in messages %}
{%- for key, value in message.items() %}{{ key }}={{ value|string|length }};{% endfor -%}
{{ message.content.upper() }}|{{ message.content.title() }}|{{ message.content.capitalize() }}|{{ message.content.replace('a', 'o') }}|{{ message.content.find('b') }}|{{ message.get('name', 'nobody') }}|{{ message.content.split() | join('/') }}|{{ message | tojson }}|{{ message | tojson(indent=2) }}|{{ ', '.join(message.keys()) }}|{{ message.content[1:3] }}|{{ message.content.rsplit(' ', 1)[-1] }}
{%- if loop.index > 2 %}{% break %}{% endif %}
{% endfor %}
{%- macro twice(x) %}{{ x }}{{ x }}{% endmacro %}{{ twice('é<&>') }}{{ none }}{{ true }}{{ 3 // 2 }}{{ 7 / 2 }}{{ undefined_thing }}""",
}

CHATS = {
    "one": [{"role": "user", "content": "Hi"}],
    "two": [{"role": "user", "content": " a bad apple\n"}, {"role": "assistant", "content": "Yes. "}],
    "system": [{"role": "system", "content": "Be brief. "}, {"role": "user", "content": "x b"}, {"role": "assistant", "content": "y"}, {"role": "user", "content": "<z> & é"}],
    "thought": [
        {"role": "user", "content": "2+2"}, {"role": "assistant", "content": "<think>\neasy\n</think>\n\n4"},
        {"role": "user", "content": "3+3"}, {"role": "assistant", "content": "<think>\nhm\n</think>\n\n6"},
    ],
    "extra": [{"role": "user", "content": "call b", "name": "Ann"}],
}

cases = []
for name, source in TEMPLATES.items():
    template = env.from_string(source)
    for chat, messages in CHATS.items():
        for prompt in (False, True):
            try:
                text = template.render(messages=messages, add_generation_prompt=prompt, tools=None, documents=None, **SPECIALS)
                cases.append({"template": name, "chat": chat, "add_generation_prompt": prompt, "text": text})
            except jinja2.exceptions.TemplateError as error:
                cases.append({"template": name, "chat": chat, "add_generation_prompt": prompt, "error": str(error)})
json.dump({"made_with": {"jinja2": jinja2.__version__}, "specials": SPECIALS, "templates": TEMPLATES, "chats": CHATS, "cases": cases}, sys.stdout, ensure_ascii=False, indent=1)
