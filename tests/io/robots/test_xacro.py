"""Xacro without running the file: what files of robots use expands as by the package xacro, and nothing of a file is run."""

import contextlib
import io
from pathlib import Path
from xml.etree.ElementTree import Element

import pytest
from defusedxml.ElementTree import fromstring

from dynid.errors import InputError
from dynid.io.robots.xacro import expand_xacro

HEAD = '<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">'
FEATURES = {
    "property": '<xacro:property name="a" value="0.5"/><l x="${2*a} ${a**2}" y="$${a}" z="${pi/4}" w="${radians(90)}"/>',
    "lazy property": '<xacro:property name="b" value="${a+1}"/><xacro:property name="a" value="2"/><l x="${b}"/>',
    "texts": '<xacro:property name="p" value="left_"/><l name="${p}hand" n="${p + \'foot\'}" u="${p.upper()[0:3]}" e="${\'\'}"/>',
    "literals": '<xacro:property name="s" value="\'12\'"/><xacro:property name="u" value="1_0"/><l x="${s}" y="${u}" t="${1 == 1.0}"/>',
    "macro": '<xacro:macro name="m" params="a b:=3 c:=${4} **inner *one"><l a="${a}" b="${b}" c="${c}"/>'
    '<xacro:insert_block name="one"/><k><xacro:insert_block name="inner"/></k></xacro:macro>'
    '<xacro:m a="1"><all><x/><y z="${1+1}"/></all><origin xyz="0 0 ${2}"/></xacro:m>',
    "forwarded": '<xacro:macro name="m" params="a:=^ b:=^|7"><l a="${a}" b="${b}"/></xacro:macro><xacro:property name="a" value="5"/>'
    "<xacro:m/>",
    "nested macros": '<xacro:macro name="i" params="x"><n x="${x}"/></xacro:macro>'
    '<xacro:macro name="o" params="x"><xacro:i x="${x+1}"/></xacro:macro><xacro:o x="1"/><xacro:call macro="i" x="9"/>',
    "conditions": '<xacro:property name="a" value="true"/><xacro:if value="${a and 2 > 1}"><y/></xacro:if>'
    '<xacro:unless value="0"><u/></xacro:unless><xacro:arg name="f" default="false"/><xacro:if value="$(arg f)"><n/></xacro:if>',
    "arguments": '<xacro:arg name="n" default="7"/><l x="$(arg n)" y="${$(arg n) + 1}" z="$(eval n * 2)" w="$(eval n + 0.5)"/>',
    "blocks": '<xacro:property name="b"><i v="${c}"/></xacro:property><xacro:property name="c" value="3"/>'
    '<l><xacro:insert_block name="b"/></l>',
    "scopes": '<xacro:macro name="m"><xacro:property name="g" value="1" scope="global"/><xacro:property name="p" value="2" scope="parent"/>'
    '<xacro:property name="l" value="3"/></xacro:macro><xacro:property name="l" value="0"/><xacro:m/><l x="${g} ${p} ${l}"/>',
    "lists": '<xacro:property name="a" value="${[1, 2.5, 3]}"/><xacro:property name="d" value="${dict(k=4, m=[5, 6])}"/>'
    "<l x=\"${a[1]} ${d['k']} ${d['m'][0]} ${len(a)} ${python.sum(a)} ${max(a)}\" y=\"${[2*v for v in a if v > 1]}\" z=\"${'k' in d}\"/>",
    "choice": '<l x="${1 if 4 > 3 > 2 else 0}" y="${not True}" z="${-(-3) // 2}" w="${round(2.567, 1)}" v="${str(3) + \'x\'}"/>',
    "names": '<xacro:element xacro:name="${\'li\' + \'nk\'}" a="1"><xacro:attribute name="b" value="x${2}"/></xacro:element>',
    "default": '<xacro:property name="a" value="1"/><xacro:property name="a" default="2"/><xacro:property name="c" default="3"/>'
    '<l x="${a}${c}"/>',
    "text": "<gazebo><plugin>${'/a' + '/b'}</plugin> tail ${1+1}</gazebo>",
    "spaces": '<xacro:include filename="part.xacro" ns="p"/><xacro:p.m v="2"/><l x="${p.size}"/>',
    "yaml": '<xacro:property name="y" value="${load_yaml(\'values.yaml\')}"/><l x="${y[\'a\'][\'b\']}" y="${y.c[1]}" z="${y.angle}"/>',
    "dirname": '<xacro:include filename="$(dirname)/part.xacro"/><xacro:m v="3"/>',
    "python names": "<l x=\"${python.abs(-2)} ${math.floor(2.7)} ${xacro.tokenize('a,b c')[2]} ${python.sorted([3, 1])[0]}\"/>",
}


def place(folder: Path, body: str) -> Path:
    (folder / "part.xacro").write_text(
        f'{HEAD}<xacro:property name="size" value="8"/><xacro:macro name="m" params="v"><q v="${{v * size}}"/></xacro:macro></robot>'
    )
    (folder / "values.yaml").write_text("a: {b: 1.5}\nc: [1, 2]\nangle: !degrees 90\n")
    file = folder / "arm.xacro"
    file.write_text(f"{HEAD}{body}</robot>")
    return file


def plain(element: Element) -> tuple[object, ...]:
    texts = ((element.text or "").split(), (element.tail or "").split())
    return element.tag, sorted(element.attrib.items()), texts, [plain(child) for child in element]


@pytest.mark.parametrize("body", FEATURES.values(), ids=FEATURES)
def test_a_file_expands_as_by_the_package(body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = pytest.importorskip("xacro")
    file = place(tmp_path, body)
    monkeypatch.setitem(package.substitution_args_context, "filename", str(file))
    with contextlib.redirect_stderr(io.StringIO()):
        expected = package.process_file(str(file)).toxml()
    assert plain(fromstring(expand_xacro(file))) == plain(fromstring(expected))


ESCAPES = [
    "${().__class__.__base__.__subclasses__()}",
    "${(lambda: ().__class__)()}",
    "${[c for c in ().__class__.__mro__]}",
    "${''.__class__}",
    "${str.__mro__}",
    "${'{0.__class__}'.format(1)}",
    "${'%s' % 1}",
    "${f'{pi.__class__}'}",
    "${getattr(1, 'real')}",
    "${__import__('os').system('true')}",
    "${open('/etc/passwd')}",
    "${eval('1')}",
    "${vars(math)}",
    "${type(1)}",
    "${map(lambda x: x, [1])}",
    "${(x := 3)}",
    "${load_yaml('/etc/hostname')}",
    "${xacro.load_yaml('../../../../etc/hostname')}",
    "$(env HOME)",
    "$(eval __import__('os'))",
    "$(eval ().__class__)",
    "$(find ../../etc)",
]


@pytest.mark.parametrize("text", ESCAPES)
def test_nothing_of_a_file_is_run(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be expanded") as caught:
        expand_xacro(place(tmp_path, f'<l x="{text.replace(chr(34), "")}"/>'.replace("<l", "<l ", 1)))
    assert "\n" not in str(caught.value)


BOMBS = {
    "power": "<l x='${9**9**9}'/>",
    "text": "<l x='${\"a\" * 10**9}'/>",
    "lists in lists": "<l x='${[[[0]*9999]*9999]*9999}'/>",
    "join": "<xacro:property name='s' value='${\"a\"*90000}'/><l x='${s.join(range(9))}' y='${s.join([s, s, s])}'/>",
    "range": "<l x='${range(10**12)}'/>",
    "round": "<l x='${round(1, -10**9)}' y='${2**20000}'/>",
    "brackets": f"<l x='${{{'(' * 5000}1{')' * 5000}}}'/>",
    "doubling": "".join(f"<xacro:property name='p{k + 1}' value='${{p{k}}}${{p{k}}}'/>" for k in range(60))
    + "<xacro:property name='p0' value='ab'/><l x='${p60}'/>",
    "macros": "<xacro:macro name='m0' params=''><l/></xacro:macro>"
    + "".join(f"<xacro:macro name='m{k + 1}' params=''><xacro:m{k}/><xacro:m{k}/></xacro:macro>" for k in range(40))
    + "<xacro:m40/>",
    "endless macro": "<xacro:macro name='m' params=''><xacro:m/></xacro:macro><xacro:m/>",
    "endless include": "<xacro:include filename='arm.xacro'/>",
    "property of itself": "<xacro:property name='a' value='${a + 1}'/><l x='${a}'/>",
    "many texts": "<l x='${len([\"a\"*90000 for i in range(99999)])}'/>",
    "functions of others": "<l x='${max(range(40000), key=range)}'/>",
    "lists beside each other": "<xacro:property name='a' value='${range(40000)}'/>"
    f"<l x='${{len(zip({', '.join('a' * 3000)}))}}'/>",
    "looked at again and again": "<xacro:property name='a' value='${range(40000)}'/><l x='${[len(a) for i in a]}'/>",
    "arguments": "<xacro:arg name='p0' default='aaaaaaaaaa'/>"
    + "".join(f"<xacro:arg name='p{k + 1}' default='{f'$(arg p{k})' * 10}'/>" for k in range(9))
    + "<l x='$(arg p9)'/>",
    "macros of nothing": "<xacro:macro name='m0' params=''/>"
    + "".join(f"<xacro:macro name='m{k + 1}' params=''>{f'<xacro:m{k}/>' * 10}</xacro:macro>" for k in range(30))
    + "<xacro:m30/>",
    "multiples": f"<xacro:property name='b' value='${{7**3000}}'/><l x='${{math.lcm({','.join(f'b+{k}' for k in range(1200))})}}'/>",
}


def test_a_number_of_yaml_that_no_text_holds_is_refused(tmp_path: Path) -> None:
    (tmp_path / "long.yaml").write_text(f"a: [{'1:' * 5000}1]")
    with pytest.raises(InputError, match="a number is too large"):
        expand_xacro(place(tmp_path, "<l x='${xacro.load_yaml(\"long.yaml\")}'/>"))


def test_a_quote_without_its_end_in_parameters_takes_no_time(tmp_path: Path) -> None:
    names = f"a:={'b' * 60}'"
    assert b"<l" in expand_xacro(place(tmp_path, f'<xacro:macro name="m" params="{names}"/><l/>'))


@pytest.mark.parametrize("body", BOMBS.values(), ids=BOMBS)
def test_work_and_memory_are_bounded(body: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be expanded"):
        expand_xacro(place(tmp_path, body))


def test_packages_are_found_by_name_above_the_file_and_beside(tmp_path: Path) -> None:
    for name, folder in (("arm_description", "a_clone"), ("hand_description", "hand")):
        (tmp_path / folder / "urdf").mkdir(parents=True)
        (tmp_path / folder / "package.xml").write_text(f"<package><name>{name}</name></package>")
    place(tmp_path / "hand" / "urdf", "")
    body = '<xacro:include filename="$(find hand_description)/urdf/part.xacro"/><xacro:m v="1"/><l x="$(find arm_description)"/>'
    found = fromstring(expand_xacro(place(tmp_path / "a_clone" / "urdf", body)))
    assert found.find("q") is not None
    assert found.find("l").get("x") == str((tmp_path / "a_clone").resolve())  # type: ignore[union-attr]
    with pytest.raises(InputError, match="package 'foot_description' was found neither"):
        expand_xacro(place(tmp_path / "a_clone" / "urdf", '<l x="$(find foot_description)"/>'))


def test_an_argument_without_a_value_says_how_to_give_one(tmp_path: Path) -> None:
    body = '<xacro:arg name="kind" default="ur5e"/><l x="$(arg kind)"/>'
    (tmp_path / "own.xacro").write_text(
        f'{HEAD}<xacro:arg name="kind" default="ur5e"/><xacro:include filename="arm.xacro"/></robot>'
    )
    with pytest.raises(InputError, match="argument 'kind' has no value; set it in a file of your own"):
        expand_xacro(place(tmp_path, body.partition("/>")[2]))
    assert b"ur5e" in expand_xacro(tmp_path / "own.xacro")
