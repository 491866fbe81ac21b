import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;
import java.util.function.Function;
import org.scalatest.Args;
import org.scalatest.Args$;
import org.scalatest.Reporter;
import org.scalatest.Suite;
import org.scalatest.Tracker;
import org.scalatest.events.Event;
import org.scalatest.events.Ordinal;
import org.scalatest.events.SuiteAborted;
import org.scalatest.events.TestCanceled;
import org.scalatest.events.TestFailed;
import org.scalatest.events.TestIgnored;
import org.scalatest.events.TestPending;
import org.scalatest.events.TestStarting;
import org.scalatest.events.TestSucceeded;

/** Runs a suite of ScalaTest, and tells what happens to each of its tests. */
public final class SuiteRun implements Reporter {
    private Function listener;

    /** Runs all tests of a suite; the listener gets lists of an event, a test and an error. */
    public void run(Suite suite, Function listener) {
        this.listener = listener;
        Args$ defaults = Args$.MODULE$;
        suite.run(
            scala.Option.empty(),
            new Args(
                this,
                defaults.apply$default$2(),
                defaults.apply$default$3(),
                defaults.apply$default$4(),
                defaults.apply$default$5(),
                new Tracker(new Ordinal(0)),
                defaults.apply$default$7(),
                defaults.apply$default$8(),
                defaults.apply$default$9(),
                defaults.apply$default$10()));
    }

    public void apply(Event event) {
        if (event instanceof TestStarting) {
            tell("starting", ((TestStarting) event).testName(), scala.Option.empty());
        } else if (event instanceof TestSucceeded) {
            tell("passed", ((TestSucceeded) event).testName(), scala.Option.empty());
        } else if (event instanceof TestFailed) {
            tell("failed", ((TestFailed) event).testName(), ((TestFailed) event).throwable());
        } else if (event instanceof TestCanceled) {
            tell("canceled", ((TestCanceled) event).testName(), scala.Option.empty());
        } else if (event instanceof TestIgnored) {
            tell("ignored", ((TestIgnored) event).testName(), scala.Option.empty());
        } else if (event instanceof TestPending) {
            tell("ignored", ((TestPending) event).testName(), scala.Option.empty());
        } else if (event instanceof SuiteAborted) {
            tell("aborted", "", ((SuiteAborted) event).throwable());
        }
    }

    private void tell(String event, String test, scala.Option error) {
        StringWriter text = new StringWriter();
        if (error.isDefined()) {
            ((Throwable) error.get()).printStackTrace(new PrintWriter(text));
        }
        listener.apply(List.of(event, test, text.toString()));
    }
}
