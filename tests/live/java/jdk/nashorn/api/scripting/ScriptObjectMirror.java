package jdk.nashorn.api.scripting;

/**
 * A value of a JavaScript filter, which Java had until 14. Maxwell asks of each value whether it is
 * one; without filters none is.
 */
public final class ScriptObjectMirror {
  private ScriptObjectMirror() {}
}
