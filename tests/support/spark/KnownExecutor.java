import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.Arrays;

/** Registers the only executor of a local session again after the driver presumed it lost. */
public final class KnownExecutor {
    public void register(String application) throws Throwable {
        Class env = Class.forName("org.apache.spark.SparkEnv");
        Class blocks = Class.forName("org.apache.spark.storage.BlockManager");
        // Handles: listing the methods of these classes would load a library that Spark lacks.
        MethodHandles.Lookup lookup = MethodHandles.publicLookup();
        Object found = lookup.findStatic(env, "get", MethodType.methodType(env))
            .invokeWithArguments(Arrays.asList(new Object[0]));
        Object manager = lookup.findVirtual(env, "blockManager", MethodType.methodType(blocks))
            .invokeWithArguments(Arrays.asList(new Object[] {found}));
        lookup.findVirtual(blocks, "initialize", MethodType.methodType(void.class, String.class))
            .invokeWithArguments(Arrays.asList(new Object[] {manager, application}));
    }
}
